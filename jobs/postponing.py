"""Moving what waits on behalf of one row: later, while it could only be turned away, and to the front when it can run.

For handlers whose jobs share something that is at times not to be had. Neither touches a job that is running, or
whose row somebody else holds, or that waits for its next try: when it comes back after a failure is its own affair.
"""

from __future__ import annotations

import datetime as dt

from django.db import transaction

from jobs import thread_connection, wakeup

AT_MOST = 1_000
"""Jobs that one call moves."""

SPREAD = dt.timedelta(seconds=2)

_NOT_AT_ALL = dt.timedelta(0)

_WAITS = """
type = %(type)s AND ref_id = %(ref_id)s AND status = 'pending' AND NOT (attempts > 0 AND EXISTS (
    SELECT FROM job_attempts WHERE job_id = jobs.id AND job_attempts.started_at = jobs.started_at
))
"""
"""What :meth:`jobs.querysets.JobQuerySet.waiting` is, of one type and row."""

_POSTPONE = f"""
WITH due AS (
    SELECT id FROM jobs
    WHERE {_WAITS} AND run_at <= statement_timestamp()
    ORDER BY id LIMIT %(at_most)s FOR NO KEY UPDATE SKIP LOCKED
), placed AS (
    SELECT id, row_number() OVER (ORDER BY id) - 1 AS place FROM due
)
UPDATE jobs
SET run_at = statement_timestamp() + %(delay)s::interval + least(placed.place * %(spacing)s::interval, %(spread)s::interval),
    updated_at = statement_timestamp()
FROM placed WHERE jobs.id = placed.id
RETURNING jobs.id
"""  # noqa: S608 (nothing of a caller's)
_BRING_FORWARD = f"""
WITH oldest AS (
    SELECT id FROM jobs
    WHERE {_WAITS}
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
"""  # noqa: S608 (nothing of a caller's)


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
    return len(thread_connection.execute(_POSTPONE, parameters))


def bring_forward(
    type_name: str,
    ref_id: str,
    *,
    count: int | None = None,
    spacing: dt.timedelta = _NOT_AT_ALL,
) -> int:
    """Make the ``count`` oldest jobs that wait, or all, due now, each ``spacing`` after the older one; return how many were moved.

    None is moved to a later time than it has. In the caller's transaction; the workers are woken once that commits.
    """
    parameters = {
        "type": type_name,
        "ref_id": ref_id,
        "count": count,
        "spacing": spacing,
    }
    moved = thread_connection.execute(_BRING_FORWARD, parameters)
    if moved:
        queues = [queue for queue, _ in moved]
        transaction.on_commit(lambda: wakeup.wake(queues), robust=True)
    return sum(number for _, number in moved)
