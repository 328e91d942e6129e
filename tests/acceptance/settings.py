"""The product's settings, and with them the job types that only these tests have."""

from __future__ import annotations

from acw.settings import *  # noqa: F403 - they are the settings of the processes under test
from acw.settings import INSTALLED_APPS

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "tests.acceptance.held",
    "tests.acceptance.hung",
    "tests.acceptance.unwanted",
    "tests.acceptance.fatal",
]
