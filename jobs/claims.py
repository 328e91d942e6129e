"""Claiming: which due jobs a worker leases next, and in which queues there are any.

On the database's clock, in one statement a batch.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.connection import Executes
from jobs.leases import LeasedJob
from jobs.models import Priority

BATCH_SECONDS = 0.1
"""How much work one claim takes: nobody waits longer than this behind the jobs of one batch."""

LARGEST_BATCH = 100


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a worker asks for.

    ``costs`` maps each type that it has a handler for to the seconds that one such job takes; ``queues`` maps each
    queue that it serves to the most jobs to take from it at once.
    """

    worker: str
    lease: dt.timedelta
    queues: Mapping[str, int]
    costs: Mapping[str, float]
    budget: float = field(default=BATCH_SECONDS)


# An array, since the planner takes a batch for thousands of rows and would rather read the whole table. least() keeps a row whose attempts are at the end of their range from stalling the batch.
_LEASE_BATCH = """UPDATE jobs
SET status = 'running', attempts = least(attempts, 2147483646) + 1, lease_seq = lease_seq + 1, leased_by = %(worker)s,
    lease_until = statement_timestamp() + %(lease)s, started_at = statement_timestamp(), updated_at = statement_timestamp()
WHERE jobs.id = ANY (ARRAY(SELECT id FROM batch))
RETURNING jobs.id, type, ref_id, queue, priority, payload::text, attempts, max_attempts,
    lease_seq, run_at, created_at, started_at
"""

# The inner query takes at most n rows of each queue, level by level, in index order: it never sorts and never
# touches a row that is not due. MATERIALIZED, since a plain IN (SELECT … LIMIT) may be run
# more than once by the planner and so take more than was asked for. Of what it found, the batch
# is what fits into the budget: a slow job ends a batch, so that nothing waits behind it.
_DUE_BATCH = """
WITH due AS MATERIALIZED (
    SELECT found.id, found.type, found.priority, found.run_at
    FROM unnest(%(queues)s::text[], %(limits)s::int[]) AS wanted (queue, most)
    CROSS JOIN LATERAL (
        SELECT level_jobs.id, level_jobs.type, level_jobs.priority, level_jobs.run_at
        FROM unnest(%(levels)s::smallint[]) AS level (priority)
        CROSS JOIN LATERAL (
            SELECT id, type, priority, run_at
            FROM jobs
            WHERE status = 'pending' AND queue = wanted.queue AND priority = level.priority
                AND run_at <= statement_timestamp() AND type = ANY(%(types)s::text[])
            ORDER BY run_at, id
            LIMIT wanted.most
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS level_jobs
        LIMIT wanted.most
    ) AS found
), batch AS MATERIALIZED (
    SELECT id FROM (
        SELECT due.id, sum(cost.seconds) OVER (
            ORDER BY due.priority, due.run_at, due.id ROWS UNBOUNDED PRECEDING
        ) - cost.seconds AS seconds_before
        FROM due
        JOIN unnest(%(types)s::text[], %(seconds)s::float8[]) AS cost (type, seconds)
            ON cost.type = due.type
    ) AS ranked
    WHERE seconds_before < %(budget)s
)
"""
_CLAIM = _DUE_BATCH + _LEASE_BATCH

# A type that no living worker announces, due for longer than the grace: any worker may take it, so
# that it fails aloud instead of lying there. job_workers tells a missing handler from a mere backlog.
_UNKNOWN_BATCH = """
WITH batch AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE status = 'pending' AND run_at <= statement_timestamp() - %(grace)s AND NOT type = ANY(%(types)s::text[])
        AND queue = ANY(%(queues)s::text[])
        AND NOT EXISTS (
            SELECT FROM job_workers
            WHERE beat_at > statement_timestamp() - %(lease)s AND types ? jobs.type
        )
    ORDER BY run_at, id
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
)
"""
_CLAIM_UNKNOWN = _UNKNOWN_BATCH + _LEASE_BATCH

# One step of the walk for each queue, through the index by which jobs are claimed: the cost is the number of queues,
# not that of pending jobs.
_PENDING_QUEUES = """
WITH RECURSIVE walk (queue) AS (
    (SELECT queue FROM jobs WHERE status = 'pending' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (
        SELECT queue FROM jobs WHERE status = 'pending' AND queue > walk.queue ORDER BY queue LIMIT 1
    ) FROM walk WHERE walk.queue IS NOT NULL
)
SELECT queue FROM walk WHERE queue IS NOT NULL
"""


def claim(connection: Executes, wanted: Claim) -> list[LeasedJob]:
    """Lease a batch: at most what fits into the budget, in order of priority, then ``run_at``."""
    rows = connection.execute(
        _CLAIM,
        {
            "queues": list(wanted.queues),
            "limits": list(wanted.queues.values()),
            "types": list(wanted.costs),
            "seconds": list(wanted.costs.values()),
            "levels": Priority.values,
            "budget": wanted.budget,
            "worker": wanted.worker,
            "lease": wanted.lease,
        },
    )
    return _in_order(rows)


def claim_unknown(
    connection: Executes, wanted: Claim, *, grace: dt.timedelta, most: int
) -> list[LeasedJob]:
    """Lease jobs that have been due for ``grace`` and that no living worker has a handler for."""
    rows = connection.execute(
        _CLAIM_UNKNOWN,
        {
            "queues": list(wanted.queues),
            "types": list(wanted.costs),
            "grace": grace,
            "most": most,
            "worker": wanted.worker,
            "lease": wanted.lease,
        },
    )
    return _in_order(rows)


def pending_queues(connection: Executes) -> set[str]:
    """The queues in which jobs wait, due or not."""
    return {row[0] for row in connection.execute(_PENDING_QUEUES, {})}


def _in_order(rows: Iterable[tuple[Any, ...]]) -> list[LeasedJob]:
    """UPDATE … RETURNING promises no order; the contract does."""
    jobs = [LeasedJob(*row) for row in rows]
    jobs.sort(key=lambda job: (job.priority, job.run_at, job.id))
    return jobs
