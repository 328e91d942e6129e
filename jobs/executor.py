"""One attempt of one job: look up, decode, call, and turn what happened into an outcome. Never raises."""

from __future__ import annotations

import datetime as dt
import logging

from django.conf import settings

from jobs import atomic, backoff, calling, outcomes, payload, registry
from jobs.connection import is_caused_by_outage
from jobs.context import JobContext
from jobs.events import LogEvent
from jobs.exceptions import (
    Cancelled,
    LeaseLost,
    Permanent,
    Snooze,
    TransactionMisused,
)
from jobs.handler_connections import HandlerConnections
from jobs.leases import LeasedJob
from jobs.outcomes import Outcome
from jobs.registry import JobType

log = logging.getLogger(__name__)


def execute(
    job: LeasedJob, context: JobContext, connections: HandlerConnections
) -> Outcome | None:
    """Run the job's handler once and say what becomes of the job.

    ``connections`` are tidied after it. None means that there is nothing to write: the handler stopped because the lease
    has passed on, or the job was completed in the handler's own transaction.
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
        BaseException
    ) as error:  # InvalidPayload, and whatever a dataclass's own __post_init__ raises
        return outcomes.dead(
            outcomes.describe(error), outcomes.describe_traceback(error)
        )
    outcome: Outcome | None = None
    away = False
    try:
        if job_type.atomic:
            calling.apart(atomic.run, job, job_type, context, value)
        else:
            calling.apart(calling.call, job_type, context, value)
    except LeaseLost:
        pass
    # Also SystemExit and what else is no Exception: a handler runs in a worker's thread, where nothing
    # but the handler itself raises them, and no handler ends the worker.
    except BaseException as error:
        outcome, away = _raised(job, job_type, error)
    else:
        misused = connections.tidy()
        if misused is not None:
            return _misused(job, job_type, misused)
        if job_type.atomic:
            return None
        return (
            outcomes.COMPLETED
            if job_type.keep_completed
            else outcomes.COMPLETED_AND_DELETED
        )
    connections.tidy(away=away)
    return outcome


def _misused(
    job: LeasedJob, job_type: JobType, misused: TransactionMisused
) -> Outcome | None:
    """What becomes of a job whose handler returned and left a transaction open, which was rolled back."""
    if job_type.atomic:
        atomic.report_after_commit(job, misused)
        return None
    return _failed(job, job_type, outcomes.describe(misused))


def _raised(
    job: LeasedJob, job_type: JobType, error: BaseException
) -> tuple[Outcome, bool]:
    """What becomes of the job, and whether the database was away. Whatever the error is, it does not raise."""
    try:
        return _decided(job, job_type, error), is_caused_by_outage(error)
    except BaseException:  # even its __class__ may be a property that fails
        text, traceback = (
            outcomes.describe(error),
            outcomes.describe_traceback(error),
        )
        return _failed(job, job_type, text, traceback=traceback), False


def _decided(job: LeasedJob, job_type: JobType, error: BaseException) -> Outcome:
    if isinstance(error, Snooze) and (delay := _delay_of(error)) is not None:
        return outcomes.snooze(delay)
    if isinstance(error, Permanent | Cancelled):
        ending = outcomes.dead if isinstance(error, Permanent) else outcomes.cancelled
        return ending(outcomes.describe(error), outcomes.describe_traceback(error))
    outcome = _failed(
        job,
        job_type,
        outcomes.describe(error),
        traceback=outcomes.describe_traceback(error),
        at_least=_retry_after(error),
    )
    # Where the answer to a commit was lost, the job may have completed with it.
    return outcomes.tried(outcome) if job_type.atomic else outcome


def failure(job: LeasedJob, error: str, *, traceback: str | None = None) -> Outcome:
    """What becomes of a job that is failed from outside its handler: another try after the backoff, or dead."""
    job_type = registry.find_job_type(job.type)
    return _failed(job, job_type, error, traceback=traceback)


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


def _delay_of(snooze: Snooze) -> dt.timedelta | None:
    """None where a class of the handler's own sets none: then it is an error like any other."""
    try:
        delay: object = snooze.delay
        return delay if isinstance(delay, dt.timedelta) else None
    except BaseException:
        return None


def _retry_after(error: BaseException) -> object:
    try:
        return getattr(error, "retry_after", None)
    except BaseException:  # a property that fails must not lose the outcome
        return None


def _backoff(job: LeasedJob, job_type: JobType | None) -> dt.timedelta:
    if job_type is not None and job_type.backoff is not None:
        try:
            return max(job_type.backoff(job.attempts), dt.timedelta(0))
        except (
            BaseException
        ):  # a broken backoff must not lose the outcome; the queue's own stands in
            log.exception(
                LogEvent.BACKOFF_FAILED, extra={"job_id": job.id, "type": job.type}
            )
    return backoff.delay(
        job.attempts, base=settings.JOBS_BACKOFF_BASE, cap=settings.JOBS_BACKOFF_MAX
    )
