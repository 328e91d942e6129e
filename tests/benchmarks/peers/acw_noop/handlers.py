"""Jobs that do nothing but be counted."""

from __future__ import annotations

import os
from dataclasses import dataclass

import meter

from jobs.context import JobContext
from jobs.registry import job_handler


@dataclass(frozen=True)
class Sent:
    """When the client enqueued it, a Unix time; 0 where the latency is not measured."""

    t: float = 0


@job_handler("bench.noop")
def noop(context: JobContext, payload: Sent) -> None:
    meter.hit(payload.t)


# Registered on demand, so that the rest runs on a checkout without `keep_completed` too.
if os.environ.get("BENCH_DELETE") == "1":

    @job_handler("bench.noop_deleted", keep_completed=False)
    def noop_deleted(context: JobContext, payload: Sent) -> None:
        meter.hit(payload.t)
