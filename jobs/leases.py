"""Claiming, extending and finishing jobs: SQL fenced by ``lease_seq``, on the database's clock.

Every statement here that ends or extends an execution names the lease it was given. Where the lease
has passed on it changes nothing, and the caller learns which jobs those were.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jobs.models import Priority
from jobs.outcomes import Outcome

BATCH_SECONDS = 0.1
"""How much work one claim takes: nobody waits longer than this behind the jobs of one batch."""

LARGEST_BATCH = 100


class Executes(Protocol):
    """What these functions need of a connection: :class:`jobs.connection.QueueConnection` has it."""

    def execute(
        self, query: str, parameters: Sequence[Any] | dict[str, Any]
    ) -> list[Any]: ...


@dataclass(frozen=True, slots=True, eq=False)
class LeasedJob:
    """A job as a claim returns it. ``payload`` is JSON text: it is decoded job by job.

    Compared by identity, so that a deque can drop one without running Python code in between.
    """

    id: uuid.UUID
    type: str
    ref_id: str | None
    queue: str
    priority: int
    payload: str
    attempts: int
    max_attempts: int
    lease_seq: int
    run_at: dt.datetime
    created_at: dt.datetime
    started_at: dt.datetime


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


# The inner query takes at most n rows of each queue, level by level, in index order: it never sorts and never
# touches a row that is not due. MATERIALIZED, since a plain IN (SELECT … LIMIT) may be run
# more than once by the planner and so take more than was asked for. Of what it found, the batch
# is what fits into the budget: a slow job ends a batch, so that nothing waits behind it.
_CLAIM = """
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
UPDATE jobs
SET status = 'running', attempts = least(attempts, 2147483646) + 1, lease_seq = lease_seq + 1, leased_by = %(worker)s,
    lease_until = statement_timestamp() + %(lease)s, started_at = statement_timestamp(), updated_at = statement_timestamp()
FROM batch
WHERE jobs.id = batch.id
RETURNING jobs.id, type, ref_id, queue, priority, payload::text, attempts, max_attempts,
    lease_seq, run_at, created_at, started_at
"""

# A type that no living worker announces, due for longer than the grace: any worker may take it, so
# that it fails aloud instead of lying there. job_workers tells a missing handler from a mere backlog.
_CLAIM_UNKNOWN = """
WITH due AS MATERIALIZED (
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
UPDATE jobs
SET status = 'running', attempts = least(attempts, 2147483646) + 1, lease_seq = lease_seq + 1, leased_by = %(worker)s,
    lease_until = statement_timestamp() + %(lease)s, started_at = statement_timestamp(), updated_at = statement_timestamp()
FROM due
WHERE jobs.id = due.id
RETURNING jobs.id, type, ref_id, queue, priority, payload::text, attempts, max_attempts,
    lease_seq, run_at, created_at, started_at
"""

# SKIP LOCKED: a row that is just being finished needs no extension, and waiting for it in another order than
# the finish takes its rows would be a deadlock.
_EXTEND = """
WITH held AS MATERIALIZED (
    SELECT jobs.id FROM jobs
    JOIN unnest(%(ids)s::uuid[], %(seqs)s::bigint[]) AS mine (id, lease_seq)
        ON jobs.id = mine.id AND jobs.lease_seq = mine.lease_seq
    WHERE status = 'running'
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs SET lease_until = statement_timestamp() + %(lease)s FROM held WHERE jobs.id = held.id
"""

_LOST = """
SELECT mine.id FROM unnest(%(ids)s::uuid[], %(seqs)s::bigint[]) AS mine (id, lease_seq)
LEFT JOIN jobs ON jobs.id = mine.id AND jobs.lease_seq = mine.lease_seq AND status = 'running'
WHERE jobs.id IS NULL
"""

_COMPLETE = """
UPDATE jobs
SET status = 'completed', completed_at = statement_timestamp(), updated_at = statement_timestamp(), leased_by = NULL, lease_until = NULL
FROM unnest(%(ids)s::uuid[], %(seqs)s::bigint[]) AS mine (id, lease_seq)
WHERE jobs.id = mine.id AND jobs.lease_seq = mine.lease_seq AND status = 'running'
RETURNING jobs.id
"""

_FINISH = """
WITH outcome AS (
    SELECT * FROM unnest(
        %(ids)s::uuid[], %(seqs)s::bigint[], %(statuses)s::text[], %(delays)s::interval[],
        %(refunds)s::int[], %(errors)s::text[], %(tracebacks)s::text[]
    ) AS outcome (id, lease_seq, status, delay, refund, error, traceback)
), done AS (
    UPDATE jobs
    SET status = outcome.status,
        run_at = CASE WHEN outcome.status = 'pending' THEN statement_timestamp() + outcome.delay ELSE run_at END,
        attempts = greatest(attempts - outcome.refund, 0),
        last_error = coalesce(outcome.error, last_error),
        completed_at = CASE WHEN outcome.status = 'pending' THEN NULL ELSE statement_timestamp() END,
        updated_at = statement_timestamp(), leased_by = NULL, lease_until = NULL
    FROM outcome
    WHERE jobs.id = outcome.id AND jobs.lease_seq = outcome.lease_seq AND jobs.status = 'running'
    RETURNING jobs.id, outcome.error, outcome.traceback, started_at, attempts + outcome.refund AS number
), attempt AS (
    INSERT INTO job_attempts (job_id, number, worker, started_at, error, traceback)
    SELECT id, number, %(worker)s, started_at, error, coalesce(traceback, '')
    FROM done WHERE error IS NOT NULL
)
SELECT id FROM done
"""

_EXPIRED = """
SELECT id, lease_seq, type, attempts, max_attempts, leased_by, started_at
FROM jobs
WHERE status = 'running' AND lease_until < statement_timestamp()
ORDER BY id
LIMIT %(most)s
FOR NO KEY UPDATE SKIP LOCKED
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


def extend(
    connection: Executes, held: Iterable[LeasedJob], lease: dt.timedelta
) -> set[uuid.UUID]:
    """Extend the leases of what is held; return the ids of those that have passed on."""
    parameters = {**_keys(held), "lease": lease}
    connection.execute(_EXTEND, parameters)
    return {row[0] for row in connection.execute(_LOST, parameters)}


def complete(connection: Executes, jobs: Iterable[LeasedJob]) -> set[uuid.UUID]:
    """Mark them completed in one statement; return the ids of those whose lease still held."""
    return {row[0] for row in connection.execute(_COMPLETE, _keys(jobs))}


def finish(
    connection: Executes,
    outcomes: Sequence[tuple[LeasedJob | ExpiredLease, Outcome]],
    *,
    worker: str,
) -> set[uuid.UUID]:
    """Write any outcomes in one statement, each failed attempt as a row of its own.

    Returns the ids of those whose lease still held; of the others nothing is written.
    """
    parameters = {
        **_keys(job for job, _ in outcomes),
        "statuses": [outcome.status for _, outcome in outcomes],
        "delays": [outcome.delay for _, outcome in outcomes],
        "refunds": [int(outcome.refund) for _, outcome in outcomes],
        "errors": [outcome.error for _, outcome in outcomes],
        "tracebacks": [outcome.traceback for _, outcome in outcomes],
        "worker": worker,
    }
    return {row[0] for row in connection.execute(_FINISH, parameters)}


@dataclass(frozen=True, slots=True)
class ExpiredLease:
    """A lease that nobody extended in time."""

    id: uuid.UUID
    lease_seq: int
    type: str
    attempts: int
    max_attempts: int
    leased_by: str
    started_at: dt.datetime


def lock_expired(connection: Executes, most: int) -> list[ExpiredLease]:
    """Lock up to ``most`` expired leases, for the transaction that the caller has open."""
    return [ExpiredLease(*row) for row in connection.execute(_EXPIRED, {"most": most})]


def pending_queues(connection: Executes) -> set[str]:
    """The queues in which jobs wait, due or not."""
    return {row[0] for row in connection.execute(_PENDING_QUEUES, {})}


def _keys(jobs: Iterable[LeasedJob | ExpiredLease]) -> dict[str, Any]:
    listed = list(jobs)
    return {
        "ids": [job.id for job in listed],
        "seqs": [job.lease_seq for job in listed],
    }


def _in_order(rows: Iterable[tuple[Any, ...]]) -> list[LeasedJob]:
    """UPDATE … RETURNING promises no order; the contract does."""
    jobs = [LeasedJob(*row) for row in rows]
    jobs.sort(key=lambda job: (job.priority, job.run_at, job.id))
    return jobs
