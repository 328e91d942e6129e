"""The queue's own periodic runners: ``job_reaper`` and ``job_purge``."""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections import Counter

from django.conf import settings
from django.db import DatabaseError, transaction

from jobs import backoff, leases, outcomes
from jobs.connection import QueueConnection, TransactionConnection, is_away
from jobs.events import LogEvent
from jobs.finisher import announce_death
from jobs.heartbeat import alive_within
from jobs.leases import ExpiredLease
from jobs.models import Status, WorkerProcess
from jobs.outcomes import Outcome
from jobs.registry import Summary, runner

log = logging.getLogger(__name__)

REAP_BATCH = 100
PURGE_BATCH = 1_000
"""Rows in one transaction: short enough to hold up neither workers nor vacuum."""

_LOST_WORKERS_KEPT = dt.timedelta(days=1)

# An array makes the plan the same for any size of the table: the batch by jobs_finished, its rows by their key.
_PURGE = """
DELETE FROM jobs WHERE id = ANY (ARRAY(
    SELECT id FROM jobs
    WHERE status = %(status)s AND completed_at < statement_timestamp() - %(retention)s::interval
    ORDER BY completed_at
    LIMIT %(most)s
    FOR UPDATE SKIP LOCKED
))
RETURNING id
"""


@runner("job_reaper")
def job_reaper(stop: threading.Event) -> Summary:
    """Return expired leases to ``pending``, or to ``dead`` where crashes have used up the attempts."""
    counts: Counter[str] = Counter(returned=0, dead=0, failed=0)
    after = leases.FIRST
    while not stop.is_set():
        with transaction.atomic():
            connection = TransactionConnection()
            expired = leases.lock_expired(connection, REAP_BATCH, after=after)
            for job in expired:
                counts[_reap_isolated(job)] += 1
        if len(expired) < REAP_BATCH:
            break
        # Behind these, so that rows that cannot be reaped never stand before the others.
        after = expired[-1].id
    gone, _ = WorkerProcess.objects.lost(alive_within() + _LOST_WORKERS_KEPT).delete()
    return {**counts, "workers_forgotten": gone}


def _reap_isolated(job: ExpiredLease) -> str:
    """One row that cannot be written never holds up the others."""
    try:
        with transaction.atomic():
            return _reap(job)
    except DatabaseError as error:
        if is_away(error):
            raise
        log.exception(
            LogEvent.FINISH_FAILED, extra={"job_id": job.id, "type": job.type}
        )
        return "failed"


def _reap(job: ExpiredLease) -> str:
    """Take one lease back; the row is locked, so its worker cannot finish in between."""
    error = (
        f"worker lost: {job.leased_by} gave no sign of life before the lease of attempt "
        f"{job.attempts} ran out"
    )
    outcome = _outcome(job, error)
    leases.finish(TransactionConnection(), [(job, outcome)], worker=job.leased_by)
    facts = {"job_id": job.id, "type": job.type, "attempt": job.attempts}
    log.warning(LogEvent.LEASE_EXPIRED, extra={**facts, "worker": job.leased_by})
    if outcome.status != Status.DEAD:
        return "returned"
    announce_death(job.id, error)
    log.error(LogEvent.DEAD, extra={**facts, "error": error})
    return "dead"


def _outcome(job: ExpiredLease, error: str) -> Outcome:
    if job.attempts >= job.max_attempts:
        return outcomes.dead(error)
    delay = backoff.delay(
        job.attempts, base=settings.JOBS_BACKOFF_BASE, cap=settings.JOBS_BACKOFF_MAX
    )
    return outcomes.retry(delay, error=error)


@runner("job_purge")
def job_purge(stop: threading.Event) -> Summary:
    """Delete finished jobs past their retention, with their attempts."""
    kept = settings.JOBS_JOB_PURGE_COMPLETED_RETENTION
    retentions = {
        Status.COMPLETED: kept,
        Status.CANCELLED: kept,
        Status.DEAD: settings.JOBS_JOB_PURGE_DEAD_RETENTION,
    }
    counts = {}
    with QueueConnection() as connection:
        for status, retention in retentions.items():
            counts[str(status)] = _purge(
                connection, status, retention=retention, stop=stop
            )
    return counts


def _purge(
    connection: QueueConnection,
    status: Status,
    *,
    retention: dt.timedelta,
    stop: threading.Event,
) -> int:
    deleted = 0
    while not stop.is_set():
        parameters = {
            "status": str(status),
            "retention": retention,
            "most": PURGE_BATCH,
        }
        batch = len(connection.execute(_PURGE, parameters))
        deleted += batch
        if batch < PURGE_BATCH:
            break
    return deleted
