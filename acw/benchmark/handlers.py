"""The jobs of the benchmark: they do nothing but let themselves be counted."""

from __future__ import annotations

import datetime as dt
from typing import Any

from acw.benchmark import settings
from acw.benchmark.job_types import LATENCY, MIXED, NOOP, NOOP_DELETED
from acw.benchmark.meter import Meter
from jobs.context import JobContext
from jobs.registry import job_handler

# Made here, before there are threads: two that made it at once would each begin the file anew.
_METER = Meter(settings.BENCHMARK_DIRECTORY / "meters")


@job_handler(NOOP)
def noop(context: JobContext, payload: dict[str, Any]) -> None:
    """Is counted."""
    _METER.count()


@job_handler(NOOP_DELETED, keep_completed=False)
def noop_deleted(context: JobContext, payload: dict[str, Any]) -> None:
    """Is counted, and leaves no row."""
    _METER.count()


@job_handler(MIXED)
def mixed(context: JobContext, payload: dict[str, Any]) -> None:
    """Holds its thread for ``payload["seconds"]``; of those that hold none, the start is noted."""
    _METER.count()
    if payload["seconds"]:
        context.wait(dt.timedelta(seconds=payload["seconds"]))
    else:
        _METER.note_since(0)


@job_handler(LATENCY)
def latency(context: JobContext, payload: dict[str, Any]) -> None:
    """Notes the seconds since ``payload["sent"]``, a time of the monotonic clock; 0 is only counted."""
    if payload["sent"]:
        _METER.note_since(payload["sent"])
    _METER.count()
