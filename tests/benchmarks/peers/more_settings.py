"""Django settings of the peers that are Django apps: django-ox and steady-queue."""

from __future__ import annotations

import os
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import steady_queue
from steady_queue.configuration import Configuration

_url = urlsplit(os.environ["BENCH_DSN"])
_peer = os.environ["BENCH_PEER"]
_concurrency = int(os.environ.get("BENCH_CONCURRENCY", "1"))

SECRET_KEY = "bench"
USE_TZ = True
INSTALLED_APPS = [
    {"django-ox": "django_ox", "steady-queue": "steady_queue"}[_peer],
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _url.path.lstrip("/"),
        "USER": _url.username or "postgres",
        "HOST": parse_qs(_url.query).get("host", [_url.hostname or ""])[0],
        # None keeps the connection; Django's default, 0, reconnects for every task.
        "CONN_MAX_AGE": None if os.environ.get("BENCH_KEEP", "1") == "1" else 0,
    }
}
if os.environ.get("BENCH_POOL") == "1":
    DATABASES["default"]["CONN_MAX_AGE"] = 0
    DATABASES["default"]["OPTIONS"] = {
        "pool": {"min_size": 2, "max_size": _concurrency + 6}
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

if _peer == "django-ox":
    TASKS = {"default": {"BACKEND": "django_ox.backend.OxBackend"}}
else:
    TASKS = {
        "default": {
            "BACKEND": "steady_queue.backend.SteadyQueueBackend",
            "QUEUES": ["default"],
        }
    }
    STEADY_QUEUE = Configuration.Options(
        workers=[
            Configuration.Worker(
                threads=_concurrency,
                processes=int(os.environ.get("BENCH_PROCESSES", "1")),
                polling_interval=timedelta(
                    seconds=float(os.environ.get("BENCH_POLL", "0.1"))
                ),
            )
        ]
    )
    steady_queue.preserve_finished_jobs = os.environ.get("BENCH_DELETE") != "1"
