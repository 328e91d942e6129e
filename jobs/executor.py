"""One attempt of one job: look up, decode, call, and turn what happened into an outcome. Never raises."""

from __future__ import annotations

import datetime as dt
import logging

from django.conf import settings
from django.db import connections, reset_queries

from jobs import backoff, outcomes, payload, registry
from jobs.context import JobContext
from jobs.events import LogEvent
from jobs.exceptions import LeaseLost, Permanent, Snooze
from jobs.leases import LeasedJob
from jobs.outcomes import Outcome
from jobs.registry import JobType

log = logging.getLogger(__name__)


def execute(job: LeasedJob, context: JobContext) -> Outcome | None:
    """Run the job's handler once and say what becomes of the job.

    None means that the handler stopped because the lease has passed on: there is nothing to write.
    """
    if job.attempts > job.max_attempts:
        return outcomes.dead(
            f"attempts used up: {job.attempts - 1} of {job.max_attempts} when it was claimed"
        )
    job_type = registry.find_job_type(job.type)
    if job_type is None:
        return _failed(job, None, f"Unhandled job kind: {job.type}, id: {job.id}")
    try:
        value = payload.decode(job.payload, job_type)
    except (
        Exception
    ) as error:  # InvalidPayload, and whatever a dataclass's own __post_init__ raises
        return outcomes.dead(
            outcomes.describe(error), outcomes.describe_traceback(error)
        )
    open_before = _open_transactions()
    _tidy_connections(open_before)
    try:
        job_type.handler(context, value)
    except Snooze as snooze:
        return outcomes.snooze(snooze.delay)
    except Permanent as error:
        return outcomes.dead(
            outcomes.describe(error), outcomes.describe_traceback(error)
        )
    except LeaseLost:
        return None
    # Also SystemExit and what else is no Exception: a handler runs in a worker's thread, where nothing
    # but the handler itself raises them, and no handler ends the worker.
    except BaseException as error:
        return _failed(
            job,
            job_type,
            outcomes.describe(error),
            traceback=outcomes.describe_traceback(error),
            at_least=_retry_after(error),
        )
    else:
        return outcomes.COMPLETED
    finally:
        _tidy_connections(open_before)


def _failed(
    job: LeasedJob,
    job_type: JobType | None,
    error: str,
    *,
    traceback: str | None = None,
    at_least: object = None,
) -> Outcome:
    """Another try after the backoff, or dead where the attempts are used up.

    ``at_least`` is the ``retry_after`` (a timedelta) that an exception may carry: what it asks for is
    never undercut.
    """
    if job.attempts >= job.max_attempts:
        return outcomes.dead(error, traceback)
    delay = _backoff(job, job_type)
    if isinstance(at_least, dt.timedelta):
        delay = max(delay, backoff.lengthened(min(at_least, outcomes.LONGEST_DELAY)))
    return outcomes.retry(delay, error=error, traceback=traceback)


def _retry_after(error: BaseException) -> object:
    try:
        return getattr(error, "retry_after", None)
    except Exception:  # a property that fails must not lose the outcome
        return None


def _backoff(job: LeasedJob, job_type: JobType | None) -> dt.timedelta:
    if job_type is not None and job_type.backoff is not None:
        try:
            return max(job_type.backoff(job.attempts), dt.timedelta(0))
        except (
            Exception
        ):  # a broken backoff must not lose the outcome; the queue's own stands in
            log.exception(
                LogEvent.BACKOFF_FAILED, extra={"job_id": job.id, "type": job.type}
            )
    return backoff.delay(
        job.attempts, base=settings.JOBS_BACKOFF_BASE, cap=settings.JOBS_BACKOFF_MAX
    )


def _open_transactions() -> set[str]:
    return {
        c.alias for c in connections.all(initialized_only=True) if c.in_atomic_block
    }


def _tidy_connections(open_before: set[str]) -> None:
    """Give the next handler sound connections: none stale, none with a transaction left open.

    A transaction that was open before is the caller's, as in tests, and is left alone.
    """
    for alias in _open_transactions() - open_before:
        connections[alias].close()
        # Django keeps a connection that was closed inside atomic() unusable; the next use makes a new one.
        del connections[alias]
    for connection in connections.all(initialized_only=True):
        if connection.alias not in open_before:
            connection.close_if_unusable_or_obsolete()
    reset_queries()
