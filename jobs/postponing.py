"""Moving what waits on behalf of one row: later, while it could only be turned away, and to the front when it can run.

For handlers whose jobs share something that is at times not to be had. Neither touches a job that is running, or
whose row somebody else holds.
"""

from __future__ import annotations

import datetime as dt

from django.db import transaction

from jobs import wakeup
from jobs.connection import TransactionConnection

AT_MOST = 1_000
"""Jobs that one call moves."""

SPREAD = dt.timedelta(seconds=2)

_NOT_AT_ALL = dt.timedelta(0)

_POSTPONE = """
WITH due AS (
    SELECT id FROM jobs
    WHERE type = %(type)s AND ref_id = %(ref_id)s AND status = 'pending' AND run_at <= statement_timestamp()
    ORDER BY id LIMIT %(at_most)s FOR NO KEY UPDATE SKIP LOCKED
), placed AS (
    SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM due
)
UPDATE jobs
SET run_at = statement_timestamp() + %(delay)s::interval + least(placed.place * %(spacing)s::interval, %(spread)s::interval),
    updated_at = statement_timestamp()
FROM placed WHERE jobs.id = placed.id
RETURNING jobs.id
"""
_BRING_FORWARD = """
WITH oldest AS (
    SELECT id FROM jobs
    WHERE type = %(type)s AND ref_id = %(ref_id)s AND status = 'pending'
    ORDER BY id LIMIT %(count)s FOR NO KEY UPDATE SKIP LOCKED
), placed AS (
    SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM oldest
), moved AS (
    UPDATE jobs
    SET run_at = statement_timestamp() + placed.place * %(spacing)s::interval, updated_at = statement_timestamp()
    FROM placed
    WHERE jobs.id = placed.id AND run_at > statement_timestamp() + placed.place * %(spacing)s::interval
    RETURNING jobs.queue
)
SELECT queue, count(*) FROM moved GROUP BY queue
"""


def postpone(
    type_name: str,
    ref_id: str,
    *,
    delay: dt.timedelta,
    spacing: dt.timedelta = _NOT_AT_ALL,
    spread: dt.timedelta = SPREAD,
    at_most: int = AT_MOST,
) -> int:
    """Make the due jobs of this type and ``ref_id`` wait for ``delay``, each ``spacing`` longer than the older one.

    None waits longer than ``delay`` and ``spread`` together: what is known of the pace may be wrong. It is the oldest
    ``at_most`` of them; returns how many were moved. Uses up no attempt.
    """
    parameters = {
        "type": type_name,
        "ref_id": ref_id,
        "delay": delay,
        "spacing": spacing,
        "spread": spread,
        "at_most": at_most,
    }
    return len(TransactionConnection().execute(_POSTPONE, parameters))


def bring_forward(
    type_name: str,
    ref_id: str,
    *,
    count: int,
    spacing: dt.timedelta = _NOT_AT_ALL,
) -> int:
    """Make the ``count`` oldest jobs that wait due now, each ``spacing`` after the older one; return how many were moved.

    None is moved to a later time than it has. In the caller's transaction; the workers are woken once that commits.
    """
    parameters = {
        "type": type_name,
        "ref_id": ref_id,
        "count": count,
        "spacing": spacing,
    }
    moved = TransactionConnection().execute(_BRING_FORWARD, parameters)
    if moved:
        queues = [queue for queue, _ in moved]
        transaction.on_commit(lambda: wakeup.wake(queues), robust=True)
    return sum(number for _, number in moved)
