"""The product's settings for the processes that `jobs torture` starts, with its job types and its runner.

They refuse to be used anywhere else: a worker with these settings takes jobs whose handlers end their process, and one
with an operator's directories would tidy those.
"""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from acw.settings import *  # noqa: F403 - they are the settings of what is tortured
from acw.settings import ACW_DATA_DIR, DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "acw.torture"]

TORTURE_DIRECTORY = Path(os.environ.get("TORTURE_DIRECTORY", ""))
# Whether the process ends when its standard input does.
TORTURE_TETHERED = "TORTURE_TETHERED" in os.environ

JOBS_TORTURE_TICK_ENABLED = True
JOBS_TORTURE_TICK_INTERVAL = dt.timedelta(seconds=1)

if (
    not TORTURE_DIRECTORY.is_absolute()
    or TORTURE_DIRECTORY not in ACW_DATA_DIR.parents
    or "search_path=acw_torture_"
    not in DATABASES["default"]["OPTIONS"].get("options", "")
):
    raise ImproperlyConfigured(
        "acw.torture.settings is for the processes that `manage.py jobs torture` starts;"
        " set DJANGO_SETTINGS_MODULE to acw.settings"
    )
