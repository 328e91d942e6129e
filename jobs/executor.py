"""One attempt of one job: look up, decode, call, and turn what happened into an outcome. Never raises."""

from __future__ import annotations

import datetime as dt
import logging

from django.conf import settings

from jobs import backoff, outcomes, payload, registry
from jobs.context import JobContext
from jobs.events import LogEvent
from jobs.exceptions import LeaseLost, Permanent, Snooze
from jobs.handler_connections import HandlerConnections
from jobs.leases import LeasedJob
from jobs.outcomes import Outcome
from jobs.registry import JobType

log = logging.getLogger(__name__)


def execute(
    job: LeasedJob, context: JobContext, connections: HandlerConnections
) -> Outcome | None:
    """Run the job's handler once and say what becomes of the job.

    ``connections`` are tidied after it. None means that the handler stopped because the lease has passed on: there is nothing to write.
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
        return (
            outcomes.COMPLETED
            if job_type.keep_completed
            else outcomes.COMPLETED_AND_DELETED
        )
    finally:
        connections.tidy()


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
