"""Handlers that go on past their timeout: their jobs are failed without them."""

from __future__ import annotations

import logging
import time

from django.conf import settings

from jobs import executor, stacks
from jobs.events import LogEvent
from jobs.leases import LeasedJob
from jobs.outcomes import Outcome
from jobs.thread import WorkerThread

log = logging.getLogger(__name__)


def fail(thread: WorkerThread) -> tuple[LeasedJob, Outcome] | None:
    """Take the thread's job from it and return the job's failure, where its handler has gone on for too long.

    Too long is past the type's timeout and ``JOBS_TIMEOUT_GRACE``. None where that is not so, or the handler ends at
    this moment: then its own outcome counts. Otherwise whatever it still returns or raises is dropped.
    """
    execution = thread.execution
    if execution is None:
        return None
    timeout, grace = execution.context.timeout, settings.JOBS_TIMEOUT_GRACE
    seconds = time.monotonic() - execution.context.started
    if timeout is None or seconds <= timeout.total_seconds():
        return None
    # From when it was first seen, since the whole process may have been suspended: then the handler knows no sooner.
    if execution.overdue_at is None:
        execution.overdue_at = time.monotonic()
    if time.monotonic() - execution.overdue_at < grace.total_seconds():
        return None
    job = execution.job
    # Before it is taken: afterwards the thread may be gone, or not be in this handler any more.
    stack = stacks.where(thread)
    error = (
        f"timed out: still running {_short(seconds)} s after it began, "
        f"its timeout is {_short(timeout.total_seconds())} s"
    )
    if not thread.take_from(execution):
        return None
    execution.context.notify_lease_lost()
    log.error(
        LogEvent.TIMEOUT,
        extra={
            "job_id": job.id,
            "type": job.type,
            "seconds": round(seconds, 3),
            "timeout": timeout.total_seconds(),
            "worker_thread": thread.name,
        },
    )
    return job, executor.failure(job, error, traceback=stack)


def _short(seconds: float) -> str:
    return f"{round(seconds, 1 if seconds < 60 else None):g}"
