"""Claiming: which due jobs a worker leases next, and in which queues there are any.

On the database's clock, in one statement a batch.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobs.connection import Executes
from jobs.lease_lengths import LENGTH, LeaseLengths
from jobs.leases import Completion, LeasedJob

BATCH_SECONDS = 0.1
"""How much work one claim takes: nobody waits longer than this behind the jobs of one batch."""

Level = tuple[str, int]
"""A queue and a priority."""

LARGEST_BATCH = 500
LARGEST_BATCH_BYTES = 4_000_000
"""Of payloads, as they are stored: no batch of large ones fills the worker's memory."""

_FRONT = 1_000
"""So many of the longest due jobs of each queue and priority are looked at for types that nobody knows."""

_NO_FLOOR = "-infinity"
_EVER = dt.timedelta(days=36_500)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a worker asks for.

    ``costs`` maps each type that it has a handler for to the seconds that one such job takes; ``limits`` maps each
    queue and priority to the most jobs to take there at once, and ``floors`` to the ``run_at`` before which it need not
    look; see :mod:`jobs.floors`.
    """

    worker: str
    leases: LeaseLengths
    limits: Mapping[Level, int]
    costs: Mapping[str, float]
    floors: Mapping[Level, dt.datetime] = field(default_factory=dict)
    budget: float = BATCH_SECONDS


# An array, since the planner takes a batch for thousands of rows and would rather read the whole table. Neither attempts nor a lease's number at the end of their range stall the batch: the ones stay
# there, the other begins again.
_LEASE_BATCH = f"""UPDATE jobs
SET status = 'running', attempts = least(attempts, 2147483646) + 1, lease_seq = lease_seq %% 9223372036854775807 + 1, leased_by = %(worker)s,
    lease_until = statement_timestamp() + {LENGTH}, started_at = statement_timestamp(), updated_at = statement_timestamp()
WHERE jobs.id = ANY (ARRAY(SELECT id FROM batch))
RETURNING jobs.id, type, ref_id, queue, priority, payload::text, attempts, max_attempts, lease_seq, run_at, created_at
"""  # noqa: S608 (nothing of a caller's)
# No payload: nobody is going to run them.
_HELD_BY = """
SELECT id, type, ref_id, queue, priority, '', attempts, max_attempts, lease_seq, run_at, created_at
FROM jobs
WHERE status = 'running' AND leased_by = %(worker)s AND started_at > statement_timestamp() - %(younger_than)s::interval
"""

# The inner query takes at most n rows of each queue and priority, in index order: it never sorts and never
# touches a row that is not due. MATERIALIZED, since a plain IN (SELECT … LIMIT) may be run
# more than once by the planner and so take more than was asked for. Of what it found, the batch
# is what fits into the budget: a slow job ends a batch, so that nothing waits behind it.
_DUE_BATCH = """due AS MATERIALIZED (
    SELECT found.id, found.type, found.priority, found.run_at, found.bytes,
        (row_number() OVER level = wanted.most)::int AS cut
    FROM unnest(%(queues)s::text[], %(priorities)s::smallint[], %(limits)s::int[], %(floors)s::timestamptz[])
        AS wanted (queue, priority, most, floor)
    CROSS JOIN LATERAL (
        SELECT id, type, priority, run_at, CASE WHEN pg_column_compression(payload) IS NULL THEN pg_column_size(payload)
                ELSE octet_length(payload::text) END AS bytes
        FROM jobs
        WHERE status = 'pending' AND queue = wanted.queue AND priority = wanted.priority
            AND run_at >= wanted.floor AND run_at <= statement_timestamp() AND type = ANY(%(types)s::text[])
        ORDER BY run_at, id
        LIMIT wanted.most
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS found
    WINDOW level AS (PARTITION BY wanted.queue, wanted.priority ORDER BY found.run_at, found.id)
), batch AS MATERIALIZED (
    SELECT id FROM (
        SELECT due.id, sum(cost.seconds) OVER earlier - cost.seconds AS seconds_before,
            sum(due.bytes) OVER earlier - due.bytes AS bytes_before,
            sum(due.cut) OVER earlier - due.cut AS cuts_before
        FROM due
        JOIN unnest(%(types)s::text[], %(seconds)s::float8[]) AS cost (type, seconds)
            ON cost.type = due.type
        WINDOW earlier AS (ORDER BY due.priority, due.run_at, due.id ROWS UNBOUNDED PRECEDING)
    ) AS ranked
    WHERE seconds_before < %(budget)s AND bytes_before < %(bytes)s AND cuts_before = 0
)"""
_CLAIM = f"WITH {_DUE_BATCH} {_LEASE_BATCH}"

# A type that no living worker announces, due for longer than the grace: any worker may take it, so
# that it fails aloud instead of lying there. job_workers tells a missing handler from a mere backlog.
# As nobody claims them they come to lie at the front of their queue and priority, and only there they are looked for,
# however long the backlog is.
_UNKNOWN_BATCH = """
WITH front AS MATERIALIZED (
    SELECT first.id, first.type
    FROM unnest(%(queues)s::text[], %(priorities)s::smallint[]) AS wanted (queue, priority)
    CROSS JOIN LATERAL (
        SELECT id, type FROM jobs
        WHERE status = 'pending' AND queue = wanted.queue AND priority = wanted.priority
            AND run_at <= statement_timestamp() - %(grace)s
        ORDER BY run_at, id
        LIMIT %(front)s
    ) AS first
), unknown AS MATERIALIZED (
    SELECT front.id FROM front
    WHERE NOT front.type = ANY(%(types)s::text[]) AND NOT EXISTS (
        SELECT FROM job_workers
        WHERE beat_at > statement_timestamp() - %(lease)s AND types ? front.type
    )
), batch AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE id = ANY (ARRAY(SELECT id FROM unknown)) AND status = 'pending'
    LIMIT %(most)s
    FOR NO KEY UPDATE SKIP LOCKED
)
"""
_CLAIM_UNKNOWN = _UNKNOWN_BATCH + _LEASE_BATCH

_NO_JOB = "NULL, NULL, NULL, NULL::smallint, NULL, NULL::int, NULL::int, NULL::bigint, NULL::timestamptz, NULL::timestamptz"
"""What stands in a claim's columns behind the id, in a row that tells of a lost lease."""

# Without a lock: a claim also finds nothing where its batch was full before, or where another one has locked it all.
_BARREN = """
SELECT wanted.queue, wanted.priority, statement_timestamp()
FROM unnest(%(queues)s::text[], %(priorities)s::smallint[]) AS wanted (queue, priority)
LEFT JOIN LATERAL (
    SELECT true AS due FROM jobs
    WHERE status = 'pending' AND queue = wanted.queue AND priority = wanted.priority
        AND run_at <= statement_timestamp() AND type = ANY(%(types)s::text[])
    ORDER BY run_at, id
    LIMIT 1
) AS found ON true
WHERE found.due IS NULL
"""

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
    return _in_order(connection.execute(_CLAIM, _parameters(wanted)))


def complete_and_claim(
    connection: Executes, done: Completion, wanted: Claim
) -> tuple[set[uuid.UUID], list[LeasedJob]]:
    """Complete one batch and lease the next, in one statement, which spares a commit.

    Returns the ids of the completed whose lease has passed on, and the batch; see :func:`jobs.leases.complete` and
    :func:`claim`.
    """
    rows = connection.execute(_together(done), _parameters(wanted) | done.parameters)
    lost = {row[0] for row in rows if row[1] is None}
    return lost, _in_order(row for row in rows if row[1] is not None)


def _together(done: Completion) -> str:
    return (
        f"WITH {done.ctes}, {_DUE_BATCH}, claimed AS ({_LEASE_BATCH}) "  # noqa: S608 (nothing of a caller's)
        f"SELECT id, {_NO_JOB} FROM ({done.lost}) AS lost UNION ALL SELECT * FROM claimed"
    )


def _parameters(wanted: Claim) -> dict[str, Any]:
    return {
        "queues": [queue for queue, _ in wanted.limits],
        "priorities": [priority for _, priority in wanted.limits],
        "limits": list(wanted.limits.values()),
        "floors": [str(wanted.floors.get(key, _NO_FLOOR)) for key in wanted.limits],
        "types": list(wanted.costs),
        "seconds": list(wanted.costs.values()),
        "budget": wanted.budget,
        "bytes": LARGEST_BATCH_BYTES,
        "worker": wanted.worker,
        **wanted.leases.parameters,
    }


def claim_unknown(
    connection: Executes, wanted: Claim, *, grace: dt.timedelta, most: int
) -> list[LeasedJob]:
    """Lease jobs that have been due for ``grace`` and that no living worker has a handler for."""
    parameters = {"grace": grace, "front": _FRONT, "most": most}
    rows = connection.execute(_CLAIM_UNKNOWN, _parameters(wanted) | parameters)
    return _in_order(rows)


def held_by(
    connection: Executes, worker: str, *, younger_than: dt.timedelta = _EVER
) -> list[LeasedJob]:
    """What the table says this worker holds, of leases that began within this time."""
    parameters = {"worker": worker, "younger_than": younger_than}
    return _in_order(connection.execute(_HELD_BY, parameters))


def barren(
    connection: Executes, wanted: Claim
) -> tuple[list[Level], dt.datetime | None]:
    """Where nothing is due that this claim asks for, and the database's time at which that was so."""
    rows = connection.execute(_BARREN, _parameters(wanted))
    return [(queue, priority) for queue, priority, _ in rows], rows[0][
        2
    ] if rows else None


def pending_queues(connection: Executes) -> set[str]:
    """The queues in which jobs wait, due or not."""
    return {row[0] for row in connection.execute(_PENDING_QUEUES, {})}


def _in_order(rows: Iterable[tuple[Any, ...]]) -> list[LeasedJob]:
    """UPDATE … RETURNING promises no order; the contract does."""
    jobs = [LeasedJob._make(row) for row in rows]
    # By the number, since two UUIDs are compared in Python.
    jobs.sort(key=lambda job: (job.priority, job.run_at, job.id.int))
    return jobs
