"""The acceptance tests' settings, and with them the job types that book amounts."""

from __future__ import annotations

from tests.acceptance.settings import *  # noqa: F403 - they are the settings of the processes under test
from tests.acceptance.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.acceptance.banked"]
