"""Whether a lease that seems to have passed on was ended by its own holder, in a write whose answer was lost.

The fence makes the second write of an outcome change nothing. That is as it should be, and no lost lease.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence

import psycopg
from django.db import DatabaseError

from jobs.connection import Executes
from jobs.leases import LeasedJob
from jobs.models import Status
from jobs.outcomes import Outcome

log = logging.getLogger(__name__)

_NOW = "SELECT id, lease_seq, status, last_error FROM jobs WHERE id = ANY (%(ids)s::uuid[])"


def settled(
    connection: Executes, refused: Sequence[tuple[LeasedJob, Outcome]]
) -> dict[uuid.UUID, str]:
    """Of the jobs whose outcomes the fence refused, the statuses of those that their own lease has ended.

    One statement. Where the database does not answer it, none: the worst of that is a warning too many.
    """
    ids = f"{{{','.join(job.id.hex for job, _ in refused)}}}"
    try:
        rows = {row[0]: row[1:] for row in connection.execute(_NOW, {"ids": ids})}
    except (psycopg.Error, DatabaseError):
        log.debug("could not look at refused outcomes", exc_info=True)
        return {}
    found = {}
    for job, outcome in refused:
        if job.id not in rows:
            # Deleted by this completion, or else by somebody after it had been another's.
            if outcome.tried:
                found[job.id] = str(Status.COMPLETED)
            continue
        lease_seq, status, last_error = rows[job.id]
        if lease_seq == job.lease_seq and (
            status == Status.COMPLETED or _was_written(outcome, status, last_error)
        ):
            found[job.id] = status
    return found


def _was_written(outcome: Outcome, status: str, last_error: str) -> bool:
    """An end under the same lease may also be the reaper's; the error tells."""
    return (
        outcome.tried
        and status in (outcome.status, Status.CANCELLED)
        and outcome.error is not None
        and outcome.error in last_error
    )
