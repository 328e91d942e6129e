"""Deleting finished jobs whose time is over: in small batches, past whatever the database will not have deleted."""

from __future__ import annotations

import datetime as dt
import logging
import threading
import uuid
from collections.abc import Sequence
from typing import Any

import psycopg

from jobs.connection import QueueConnection, is_away
from jobs.events import LogEvent
from jobs.models import Status

log = logging.getLogger(__name__)

MOST_REFUSED = 10_000
"""Rows that the database refuses to delete, after which the rest waits for the next tick."""

_OLD = """
    SELECT id FROM jobs
    WHERE status = %(status)s AND completed_at < statement_timestamp() - %(retention)s::interval
        AND id <> ALL (%(refused)s::uuid[])
    ORDER BY completed_at
    LIMIT %(most)s
    FOR UPDATE SKIP LOCKED
"""
# An array makes the plan the same for any size of the table: the batch by jobs_finished, its rows by their key.
_DELETE = f"DELETE FROM jobs WHERE id = ANY (ARRAY({_OLD})) RETURNING id"  # noqa: S608 (nothing of a caller's)
# Only what is old still: an operator may have retried it meanwhile.
_DELETE_THESE = """
DELETE FROM jobs
WHERE id = ANY (%(ids)s::uuid[]) AND status = %(status)s
    AND completed_at < statement_timestamp() - %(retention)s::interval
RETURNING id
"""


class Purge:
    """One pass over the finished jobs, ``batch`` rows in one transaction.

    ``refused`` are those that could not be deleted, each of which is logged. Raises what ``jobs.connection.UNAVAILABLE`` holds while the database is away.
    """

    def __init__(
        self, connection: QueueConnection, stop: threading.Event, *, batch: int
    ) -> None:
        self.refused: list[uuid.UUID] = []
        self._connection = connection
        self._stop = stop
        self._batch = batch

    def delete(self, status: Status, *, retention: dt.timedelta) -> int:
        """Delete the jobs that have been in this status for longer than ``retention``; return how many."""
        deleted = 0
        old: dict[str, Any] = {"status": str(status), "retention": retention}
        while not self._stop.is_set() and len(self.refused) < MOST_REFUSED:
            batch = {**old, "refused": self.refused, "most": self._batch}
            try:
                gone = looked_at = len(self._connection.execute(_DELETE, batch))
            except psycopg.Error as error:
                if is_away(error):
                    raise
                found = [row[0] for row in self._connection.execute(_OLD, batch)]
                gone, looked_at = self._delete_these(found, old), len(found)
            deleted += gone
            if looked_at < self._batch:
                break
        return deleted

    def _delete_these(self, ids: Sequence[uuid.UUID], old: dict[str, Any]) -> int:
        """By halves, down to the rows that are refused: a few of them cost a few statements."""
        if not ids or self._stop.is_set():
            return 0
        try:
            return len(
                self._connection.execute(_DELETE_THESE, {**old, "ids": list(ids)})
            )
        except psycopg.Error as error:
            if is_away(error):
                raise
            if len(ids) == 1:
                self.refused += ids
                log.exception(LogEvent.PURGE_FAILED, extra={"job_id": ids[0]})
                return 0
        middle = len(ids) // 2
        return self._delete_these(ids[:middle], old) + self._delete_these(
            ids[middle:], old
        )
