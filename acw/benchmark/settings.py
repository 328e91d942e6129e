"""The product's settings for the processes that `benchjobs` measures, with the benchmark's job types.

They refuse to be used anywhere else: a worker with these settings takes jobs whose handlers do nothing, and one
with an operator's directories would tidy those.
"""

from __future__ import annotations

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from acw.settings import *  # noqa: F403 - they are the settings of what is measured
from acw.settings import ACW_DATA_DIR, DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "acw.benchmark"]

# Where the counts of handler calls are kept, among others.
BENCHMARK_DIRECTORY = Path(os.environ.get("BENCHMARK_DIRECTORY", ""))
# The most jobs of one claim; 0 is what the product takes.
BENCHMARK_LARGEST_BATCH = int(os.environ.get("BENCHMARK_LARGEST_BATCH", "0"))
# Whether the process ends when its standard input does.
BENCHMARK_TETHERED = "BENCHMARK_TETHERED" in os.environ

if (
    not BENCHMARK_DIRECTORY.is_absolute()
    or BENCHMARK_DIRECTORY not in ACW_DATA_DIR.parents
    or "search_path=acw_bench_"
    not in DATABASES["default"]["OPTIONS"].get("options", "")
):
    raise ImproperlyConfigured(
        "acw.benchmark.settings is for the processes that `manage.py benchjobs` starts;"
        " set DJANGO_SETTINGS_MODULE to acw.settings"
    )
