"""The queue's own periodic runners: ``job_reaper`` and ``job_purge``."""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections import Counter

from django.conf import settings
from django.db import DatabaseError, transaction

from jobs import leases, recovery
from jobs.bounded import limit_locks, lock_limit
from jobs.connection import QueueConnection, TransactionConnection, is_away
from jobs.events import LogEvent
from jobs.finisher import announce_death
from jobs.heartbeat import alive_within
from jobs.leases import ExpiredLease
from jobs.models import Status, WorkerProcess
from jobs.purging import Purge
from jobs.registry import Summary, runner

log = logging.getLogger(__name__)

REAP_BATCH = 100
PURGE_BATCH = 1_000
"""Rows in one transaction: short enough to hold up neither workers nor vacuum."""

_LOST_WORKERS_KEPT = dt.timedelta(days=1)


@runner("job_reaper")
def job_reaper(stop: threading.Event) -> Summary:
    """Return expired leases to ``pending``, or to ``dead`` where crashes have used up the attempts.

    Those that an operator asked to stop end as ``cancelled``.
    """
    recovered = recovery.recover()
    counts: Counter[str] = Counter(returned=0, dead=0, cancelled=0, failed=0)
    after = leases.FIRST
    while not stop.is_set():
        with transaction.atomic():
            connection = TransactionConnection()
            limit_locks(connection, lock_limit())
            expired = leases.lock_expired(connection, REAP_BATCH, after=after)
            for job in expired:
                counts[_reap_isolated(job)] += 1
        if len(expired) < REAP_BATCH:
            break
        # Behind these, so that rows that cannot be reaped never stand before the others.
        after = expired[-1].id
    gone, _ = WorkerProcess.objects.lost(alive_within() + _LOST_WORKERS_KEPT).delete()
    return {**counts, "recovered": recovered, "workers_forgotten": gone}


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
    outcome = recovery.lost(job, error)
    written = leases.finish(
        TransactionConnection(), [(job, outcome)], worker=job.leased_by
    )
    status = written.get(job.id)
    facts = {"job_id": job.id, "type": job.type, "attempt": job.attempts}
    log.warning(LogEvent.LEASE_EXPIRED, extra={**facts, "worker": job.leased_by})
    if status == Status.CANCELLED:
        log.info(LogEvent.CANCELLED, extra={**facts, "error": error})
        return "cancelled"
    if status != Status.DEAD:
        return "returned"
    announce_death(job.id, error)
    log.error(LogEvent.DEAD, extra={**facts, "error": error})
    return "dead"


@runner("job_purge")
def job_purge(stop: threading.Event) -> Summary:
    """Delete finished jobs past their retention, with their attempts."""
    kept = settings.JOBS_JOB_PURGE_COMPLETED_RETENTION
    retentions = {
        Status.COMPLETED: kept,
        Status.CANCELLED: kept,
        Status.DEAD: settings.JOBS_JOB_PURGE_DEAD_RETENTION,
    }
    with QueueConnection() as connection:
        purge = Purge(connection, stop, batch=PURGE_BATCH)
        counts = {
            str(status): purge.delete(status, retention=retention)
            for status, retention in retentions.items()
        }
    return {**counts, "failed": len(purge.refused)}
