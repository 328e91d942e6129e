"""Writing what became of executions: fenced, in batches, and with the news that a death brings."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence

import psycopg
from django.db import DatabaseError, Error, connection, transaction

from jobs import claims, leases
from jobs.bounded import limit_locks, lock_limit
from jobs.claims import Claim
from jobs.connection import Executes, TransactionConnection, is_away
from jobs.events import LogEvent
from jobs.leases import Completion, LeasedJob
from jobs.models import Job, Status
from jobs.outcomes import NOT_BEGUN, Outcome, tried
from jobs.settlement import settled
from jobs.signals import job_dead

log = logging.getLogger(__name__)

Finished = Sequence[tuple[LeasedJob, Outcome]]


def write(
    queue: Executes,
    finished: list[tuple[LeasedJob, Outcome]],
    *,
    worker: str,
    wanted: Claim | None = None,
) -> list[LeasedJob]:
    """Write the outcomes, and take out of the list what is dealt with; with ``wanted``, claim the next batch.

    A lease that has passed on is logged and nothing is written for it. One outcome that cannot be stored
    never holds up the others: it is logged, and its lease runs out. Raises what ``jobs.connection.UNAVAILABLE``
    holds while the database is away; what is then left in the list is to be written again.
    """
    try:
        return _write(queue, finished, worker=worker, wanted=wanted)
    except (psycopg.Error, Error):
        # The statement that failed may have been carried out all the same.
        finished[:] = [
            (job, outcome if outcome is NOT_BEGUN else tried(outcome))
            for job, outcome in finished
        ]
        raise


def _write(
    queue: Executes,
    finished: list[tuple[LeasedJob, Outcome]],
    *,
    worker: str,
    wanted: Claim | None,
) -> list[LeasedJob]:
    completed, dead, others = [], [], []
    for entry in finished:
        status = entry[1].status
        if status == Status.COMPLETED:
            completed.append(entry)
        elif status == Status.DEAD:
            dead.append(entry)
        else:
            others.append(entry)
    if others:
        _write_isolated(queue, others, worker=worker)
    finished[:] = dead + completed
    for job, outcome in dead:
        _write_dead(queue, job, outcome, worker=worker)
        finished.pop(0)
    if wanted is None or not completed:
        _complete(queue, finished)
        return [] if wanted is None else claims.claim(queue, wanted)
    try:
        lost, claimed = claims.complete_and_claim(queue, _completion(finished), wanted)
    except (psycopg.Error, DatabaseError) as error:
        if is_away(error):
            raise
        # Apart, since which half was refused is not known: neither must wait for what keeps the other from passing.
        _complete(queue, finished)
        return claims.claim(queue, wanted)
    _report_completed(queue, finished, lost)
    finished.clear()
    return claimed


def _completion(completed: Finished) -> Completion:
    return leases.completion(
        [job for job, outcome in completed if outcome.keep],
        [job for job, outcome in completed if not outcome.keep],
    )


def _complete(queue: Executes, finished: list[tuple[LeasedJob, Outcome]]) -> None:
    """In one statement, or, where one row is refused, one by one; what is dealt with leaves the list."""
    if not finished:
        return
    try:
        lost = leases.complete(queue, _completion(finished))
    except (psycopg.Error, DatabaseError) as error:
        if is_away(error):
            raise
        if len(finished) > 1:
            while finished:
                _complete(queue, finished[:1])
                finished.pop(0)
            return
        job = finished[0][0]
        log.exception(
            LogEvent.FINISH_FAILED, extra={"job_id": job.id, "type": job.type}
        )
    else:
        _report_completed(queue, finished, lost)
    finished.clear()


def _write_isolated(queue: Executes, finished: Finished, *, worker: str) -> None:
    try:
        written = leases.finish(queue, finished, worker=worker)
    except (psycopg.Error, DatabaseError) as error:
        if is_away(error):
            raise
        if len(finished) > 1:
            for each in finished:
                _write_isolated(queue, [each], worker=worker)
            return
        job = finished[0][0]
        log.exception(
            LogEvent.FINISH_FAILED, extra={"job_id": job.id, "type": job.type}
        )
        return
    _report(queue, finished, written)


def _write_dead(
    queue: Executes, job: LeasedJob, outcome: Outcome, *, worker: str
) -> None:
    """The death and what its receivers make of it commit together, in a session that nobody had before or has after."""
    if connection.in_atomic_block:  # the caller's, as in tests
        _write_dead_in_session(queue, job, outcome, worker=worker)
        return
    connection.close()
    try:
        _write_dead_in_session(queue, job, outcome, worker=worker)
    finally:
        connection.close()


def _write_dead_in_session(
    queue: Executes, job: LeasedJob, outcome: Outcome, *, worker: str
) -> None:
    try:
        with transaction.atomic():
            session = TransactionConnection()
            limit_locks(session, lock_limit())
            written = leases.finish(session, [(job, outcome)], worker=worker)
            limit_locks(session, "0")
            if written.get(job.id) == Status.DEAD:
                announce_death(job.id, outcome.error or "")
    except (psycopg.Error, DatabaseError) as error:
        if is_away(error) or isinstance(
            error.__cause__, psycopg.errors.LockNotAvailable
        ):
            # Kept, and written again: by the main thread too, which must not wait for an operator's lock without a sign.
            raise psycopg.OperationalError(str(error)) from error
        log.exception(
            LogEvent.FINISH_FAILED, extra={"job_id": job.id, "type": job.type}
        )
        return
    _report(queue, [(job, outcome)], written)


def announce_death(job_id: uuid.UUID, error: str) -> None:
    """Send ``job_dead`` within the open transaction; a broken receiver must not keep a job alive."""
    # Some payloads cannot be decoded; who reads this one does so inside its own error handling.
    job = Job.objects.defer("payload").get(pk=job_id)
    facts = {"job_id": job.id, "type": job.type}
    try:
        with transaction.atomic():
            for receiver, result in job_dead.send_robust(
                sender=Job, job=job, error=error
            ):
                if isinstance(result, Exception):
                    name = getattr(receiver, "__qualname__", repr(receiver))
                    log.error(
                        LogEvent.DEAD_RECEIVER_FAILED,
                        extra={**facts, "receiver": name},
                        exc_info=result,
                    )
    except DatabaseError as failure:
        if is_away(failure):
            raise
        log.exception(LogEvent.DEAD_RECEIVER_FAILED, extra=facts)


def _report_completed(
    queue: Executes, completed: Finished, lost: set[uuid.UUID]
) -> None:
    if lost or log.isEnabledFor(logging.DEBUG):
        _report(
            queue,
            completed,
            {job.id: Status.COMPLETED for job, _ in completed if job.id not in lost},
        )


def _report(
    queue: Executes, finished: Finished, written: Mapping[uuid.UUID, str]
) -> None:
    """Log each end as it was written, which may not be as it was decided."""
    refused = [entry for entry in finished if entry[0].id not in written]
    if refused:
        written = {**written, **settled(queue, refused)}
    for job, outcome in finished:
        facts = {
            "job_id": job.id,
            "type": job.type,
            "ref_id": job.ref_id,
            "attempt": job.attempts,
        }
        status = written.get(job.id)
        if status is None:
            log.warning(
                LogEvent.LEASE_LOST, extra={**facts, "lease_seq": job.lease_seq}
            )
        elif status == Status.COMPLETED:
            log.debug(LogEvent.COMPLETED, extra=facts)
        elif status == Status.CANCELLED:
            log.info(LogEvent.CANCELLED, extra={**facts, "error": outcome.error})
        elif status == Status.DEAD:
            log.error(LogEvent.DEAD, extra={**facts, "error": outcome.error})
        elif outcome is NOT_BEGUN:
            log.info(LogEvent.RELEASED, extra=facts)
        elif outcome.error is None:
            log.info(
                LogEvent.SNOOZED,
                extra={**facts, "delay": outcome.delay.total_seconds()},
            )
        else:
            log.warning(
                LogEvent.FAIL_RETRY,
                extra={
                    **facts,
                    "max_attempts": job.max_attempts,
                    "delay": round(outcome.delay.total_seconds(), 3),
                    "error": outcome.error,
                },
            )
