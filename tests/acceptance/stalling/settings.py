"""The product's settings with this app, and with intervals for its runners."""

from __future__ import annotations

import datetime as dt
import os

from acw.settings import *  # noqa: F403 - they are the settings of the processes under test
from acw.settings import INSTALLED_APPS

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "tests.acceptance.held",
    "tests.acceptance.stalling",
]

_ON = os.environ.get("TEST_RUNNERS", "").split(",")
JOBS_TEST_SLOT_ENABLED = "test_slot" in _ON
JOBS_TEST_SLOT_INTERVAL = dt.timedelta(seconds=1)
JOBS_TEST_FATAL_ENABLED = "test_fatal" in _ON
JOBS_TEST_FATAL_INTERVAL = dt.timedelta(hours=1)
JOBS_TEST_SLOW_ENABLED = "test_slow" in _ON
JOBS_TEST_SLOW_INTERVAL = dt.timedelta(hours=1)
