"""The product's settings, with the job type that keeps a ledger."""

from __future__ import annotations

import os
import select
import time

from acw.settings import *  # noqa: F403 - they are the settings of the processes under test
from acw.settings import INSTALLED_APPS

if "FAKETIME_TIMESTAMP_FILE" in os.environ:
    # faketime's clock_nanosleep now and then passes on a time that the system refuses; select() it leaves alone.
    vars(time).update(sleep=lambda seconds: select.select([], [], [], float(seconds)))

INSTALLED_APPS = [*INSTALLED_APPS, "tests.acceptance.faulted"]
