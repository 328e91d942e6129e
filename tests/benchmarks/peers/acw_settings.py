"""The product's settings, and with them the benchmark's job types."""

from __future__ import annotations

from acw.settings import *  # noqa: F403 - they are the settings of the process under test
from acw.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "acw_noop"]
