"""Taking back at once what a worker of this host held when it was killed, as its journal tells.

What it had completed is completed, what it had not begun keeps its attempt, and only what it was at has lost one. Leases of which
nothing is known, those of other hosts, run out, and the reaper takes them back.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
from collections import Counter
from typing import Protocol

from django.conf import settings

from jobs import backoff, claims, finisher, journal, outcomes, registry
from jobs.bounded import BoundedConnection
from jobs.connection import UNAVAILABLE
from jobs.events import LogEvent
from jobs.journal import Notes, Remains
from jobs.leases import LeasedJob
from jobs.outcomes import COMPLETED, COMPLETED_AND_DELETED, NOT_BEGUN, Outcome

log = logging.getLogger(__name__)

LOOK_EVERY = 5.0
"""Seconds between two looks at the journals of this host."""

_FORGET = "DELETE FROM job_workers WHERE name = %(worker)s"

_SILENT = "without a word, as by os._exit, kill -9 or for want of memory"


class Begun(Protocol):
    """What there is to know of a job whose worker was lost."""

    @property
    def attempts(self) -> int: ...
    @property
    def max_attempts(self) -> int: ...


class Recovery:
    """Looks now and then."""

    def __init__(self) -> None:
        self._due = 0.0

    def look(self) -> None:
        """Recover what there is, if it is time to. Raises what ``jobs.connection.UNAVAILABLE`` holds."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + LOOK_EVERY
            recover()


def recover() -> int:
    """Take back what the dead workers of this host have left; return how many jobs those were.

    Raises what ``jobs.connection.UNAVAILABLE`` holds; what is left then is found again.
    """
    count = 0
    for path in journal.left_behind():
        try:
            with journal.remains(path) as found:
                if found is not None:
                    count += _take_back(found)
        except UNAVAILABLE:
            raise
        # One that cannot be dealt with ends no worker and holds up no other, nor the reaper.
        except Exception as error:
            log.exception(
                LogEvent.JOURNAL_FAILED,
                extra={"path": str(path), "error": str(error)},
            )
    return count


def lost(job: Begun, error: str, traceback: str | None = None) -> Outcome:
    """What becomes of a job that was begun, or may have been, when its worker was lost."""
    if job.attempts >= job.max_attempts:
        return outcomes.dead(error, traceback)
    delay: dt.timedelta = backoff.delay(
        job.attempts, base=settings.JOBS_BACKOFF_BASE, cap=settings.JOBS_BACKOFF_MAX
    )
    return outcomes.retry(delay, error=error, traceback=traceback)


def _take_back(found: Remains) -> int:
    error, traceback = _what_happened(found)
    with BoundedConnection() as connection:
        decided = [
            (job, outcome)
            for job in claims.held_by(connection, found.worker)
            if (outcome := _outcome(job, found.notes, error, traceback)) is not None
        ]
        counts = Counter(_kind(outcome) for _, outcome in decided)
        count = len(decided)
        finisher.write(connection, decided, worker=found.worker)
        # Taken for dead by the others too: its ticks may be run again.
        connection.execute(_FORGET, {"worker": found.worker})
    if not count and found.again:
        return 0
    log.warning(
        LogEvent.WORKER_LOST, extra={"worker": found.worker, "error": error, **counts}
    )
    return count


def _outcome(
    job: LeasedJob, notes: Notes, error: str, traceback: str | None
) -> Outcome | None:
    """None where nothing is known: its lease runs out."""
    if job.key in notes.done:
        job_type = registry.find_job_type(job.type)
        kept = job_type is None or job_type.keep_completed
        return COMPLETED if kept else COMPLETED_AND_DELETED
    if job.key in notes.begun:
        return lost(job, error, traceback)
    return NOT_BEGUN if notes.complete else None


def _kind(outcome: Outcome) -> str:
    if outcome is NOT_BEGUN:
        return "not_begun"
    return "begun" if outcome.error else "completed"


def _what_happened(found: Remains) -> tuple[str, str | None]:
    """The error of the jobs that it was at, and the traceback where there is one."""
    how = found.crash.partition("\n")[0] or _SILENT
    error = f"worker lost: {found.worker} ended while this job ran: {how}"
    traceback = outcomes.storable(found.crash, outcomes.TRACEBACK_LIMIT) or None
    return outcomes.storable(error, outcomes.ERROR_LIMIT), traceback
