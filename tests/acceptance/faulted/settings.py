"""The product's settings, with the job type that keeps a ledger."""

from __future__ import annotations

from acw.settings import *  # noqa: F403 - they are the settings of the processes under test
from acw.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.acceptance.faulted"]
