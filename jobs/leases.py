"""Extending, finishing and taking back leases: SQL fenced by ``lease_seq``, on the database's clock.

Every statement here that ends or extends an execution names the lease it was given. Where the lease
has passed on it changes nothing, and the caller learns which jobs those were.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jobs.connection import Executes
from jobs.lease_lengths import LENGTH, LeaseLengths
from jobs.outcomes import Outcome

FIRST = uuid.UUID(int=0)
"""Before every job's id."""

LeaseKey = tuple[uuid.UUID, int]
"""A job's id and the number of one of its leases."""


class LeasedJob(NamedTuple):
    """A job as a claim returns it. ``payload`` is JSON text: it is decoded job by job.

    A tuple, since hundreds are made at once. Compared by identity, so that a deque can drop one without running
    Python code in between.
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

    @property
    def key(self) -> LeaseKey:
        return self.id, self.lease_seq


LeasedJob.__eq__ = object.__eq__  # type: ignore[method-assign]
LeasedJob.__hash__ = object.__hash__  # type: ignore[method-assign]


# A lease that holds is one that has an end, as a constraint says. Asked for in a way that the planner cannot estimate: it
# takes running rows for few, and would read all of jobs_running (which is full of dead entries beside a transaction
# that holds back vacuum), or compare each row of the batch with each. As it is, it looks up ten rows or so by their key.
_HELD = "coalesce(jobs.lease_until, '-infinity') <> '-infinity'"

# SKIP LOCKED: a row that is just being finished needs no extension, and waiting for it in another order than
# the finish takes its rows would be a deadlock.
_EXTEND = f"""
WITH held AS MATERIALIZED (
    SELECT jobs.id FROM jobs
    JOIN unnest(%(ids)s::uuid[], %(seqs)s::bigint[]) AS mine (id, lease_seq)
        ON jobs.id = mine.id AND jobs.lease_seq = mine.lease_seq
    WHERE jobs.id = ANY (ARRAY(SELECT unnest(%(ids)s::uuid[]))) AND {_HELD}
    FOR NO KEY UPDATE OF jobs SKIP LOCKED
)
UPDATE jobs SET lease_until = statement_timestamp() + {LENGTH} WHERE id = ANY (ARRAY(SELECT id FROM held))
"""  # noqa: S608 (nothing of a caller's)

_NEWS = f"""
SELECT mine.id, mine.lease_seq, jobs.id IS NULL
FROM unnest(%(ids)s::uuid[], %(seqs)s::bigint[]) AS mine (id, lease_seq)
LEFT JOIN jobs ON jobs.id = mine.id AND jobs.lease_seq = mine.lease_seq AND {_HELD}
WHERE jobs.id IS NULL OR jobs.cancel_requested_at IS NOT NULL
"""  # noqa: S608 (nothing of a caller's)

_KEEP = f"""kept (id, lease_seq) AS (
    SELECT * FROM unnest(%(kept_ids)s::uuid[], %(kept_seqs)s::bigint[])
), marked AS (
    UPDATE jobs
    SET status = 'completed', completed_at = statement_timestamp(), updated_at = statement_timestamp(),
        leased_by = NULL, lease_until = NULL
    FROM kept
    WHERE jobs.id = ANY (ARRAY(SELECT id FROM kept)) AND jobs.id = kept.id
        AND jobs.lease_seq = kept.lease_seq AND {_HELD}
    RETURNING jobs.id
)"""  # noqa: S608 (nothing of a caller's)
_KEPT_LOST = "SELECT id FROM kept WHERE NOT EXISTS (SELECT FROM marked WHERE marked.id = kept.id)"

_DELETE = f"""gone (id, lease_seq) AS (
    SELECT * FROM unnest(%(gone_ids)s::uuid[], %(gone_seqs)s::bigint[])
), deleted AS (
    DELETE FROM jobs USING gone
    WHERE jobs.id = ANY (ARRAY(SELECT id FROM gone)) AND jobs.id = gone.id
        AND jobs.lease_seq = gone.lease_seq AND {_HELD}
    RETURNING jobs.id
)"""  # noqa: S608 (nothing of a caller's)
_GONE_LOST = "SELECT id FROM gone WHERE NOT EXISTS (SELECT FROM deleted WHERE deleted.id = gone.id)"

# Decided here and not by the worker, which may not have heard of it: whatever was asked to stop and is not completed is
# cancelled.
_STOPPED = "(jobs.cancel_requested_at IS NOT NULL AND outcome.status <> 'completed')"

_FINISH = f"""
WITH outcome AS (
    SELECT * FROM unnest(
        %(ids)s::uuid[], %(seqs)s::bigint[], %(statuses)s::text[], %(delays)s::interval[],
        %(refunds)s::int[], %(errors)s::text[], %(tracebacks)s::text[]
    ) AS outcome (id, lease_seq, status, delay, refund, error, traceback)
), done AS (
    UPDATE jobs
    SET status = CASE WHEN {_STOPPED} THEN 'cancelled' ELSE outcome.status END,
        run_at = CASE WHEN outcome.status = 'pending' AND NOT {_STOPPED} THEN statement_timestamp() + outcome.delay
            ELSE run_at END,
        attempts = greatest(attempts - outcome.refund, 0),
        last_error = CASE WHEN {_STOPPED} THEN 'cancelled by an operator while '
                || coalesce('it ran: ' || outcome.error, 'a worker held it')
            ELSE coalesce(outcome.error, last_error) END,
        completed_at = CASE WHEN outcome.status = 'pending' AND NOT {_STOPPED} THEN NULL
            ELSE statement_timestamp() END,
        updated_at = statement_timestamp(), leased_by = NULL, lease_until = NULL
    FROM outcome
    WHERE jobs.id = ANY (ARRAY(SELECT id FROM outcome)) AND jobs.id = outcome.id
        AND jobs.lease_seq = outcome.lease_seq AND {_HELD}
    RETURNING jobs.id, jobs.status, outcome.error, outcome.traceback, started_at, attempts + outcome.refund AS number
), attempt AS (
    INSERT INTO job_attempts (job_id, number, worker, started_at, error, traceback)
    SELECT id, number, %(worker)s, started_at, error, coalesce(traceback, '')
    FROM done WHERE error IS NOT NULL
)
SELECT id, status FROM done
"""  # noqa: S608 (nothing of a caller's)

_EXPIRED = """
SELECT id, lease_seq, type, attempts, max_attempts, coalesce(leased_by, ''), started_at
FROM jobs
WHERE status = 'running' AND lease_until < statement_timestamp() AND id > %(after)s
ORDER BY id
LIMIT %(most)s
FOR NO KEY UPDATE SKIP LOCKED
"""


class News(NamedTuple):
    """What became of leases meanwhile: those that have passed on, and those of jobs that are to be cancelled.

    By id and number: the same job may have been given back and claimed again.
    """

    lost: set[LeaseKey]
    cancelled: set[LeaseKey]


def extend(
    connection: Executes, held: Iterable[LeasedJob], lengths: LeaseLengths
) -> News:
    """Extend the leases of what is held, each by its type's length; return what is new of them."""
    parameters = {**_keys(held), **lengths.parameters}
    connection.execute(_EXTEND, parameters)
    news = News(set(), set())
    for job_id, lease_seq, is_lost in connection.execute(_NEWS, parameters):
        (news.lost if is_lost else news.cancelled).add((job_id, lease_seq))
    return news


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """How jobs are completed, as parts of a statement: alone, or together with a claim.

    ``ctes`` is what to put behind WITH, ``lost`` a query of the ids whose lease has passed on.
    """

    ctes: str
    lost: str
    parameters: dict[str, Any]


def completion(
    kept: Collection[LeasedJob], gone: Collection[LeasedJob] = ()
) -> Completion:
    """The statement's parts that mark ``kept`` as completed and delete the rows of ``gone``."""
    parts: list[tuple[str, str]] = []
    parameters: dict[str, Any] = {}
    if kept:
        parts.append((_KEEP, _KEPT_LOST))
        parameters |= _prefixed("kept", kept)
    if gone:
        parts.append((_DELETE, _GONE_LOST))
        parameters |= _prefixed("gone", gone)
    return Completion(
        ctes=", ".join(cte for cte, _ in parts),
        lost=" UNION ALL ".join(lost for _, lost in parts),
        parameters=parameters,
    )


def complete(connection: Executes, done: Completion) -> set[uuid.UUID]:
    """Complete jobs in one statement; return the ids of those whose lease has passed on."""
    rows = connection.execute(f"WITH {done.ctes} {done.lost}", done.parameters)
    return {row[0] for row in rows}


def finish(
    connection: Executes,
    outcomes: Sequence[tuple[LeasedJob | ExpiredLease, Outcome]],
    *,
    worker: str,
) -> dict[uuid.UUID, str]:
    """Write any outcomes in one statement, each failed attempt as a row of its own.

    Returns those whose lease still held, by id, with the status that was written: ``cancelled`` in the place of any
    but ``completed`` where an operator had asked for it. Of the others nothing is written.
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
    return dict(connection.execute(_FINISH, parameters))


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


def lock_expired(
    connection: Executes, most: int, *, after: uuid.UUID = FIRST
) -> list[ExpiredLease]:
    """Lock up to ``most`` expired leases of jobs behind ``after``, for the transaction that the caller has open."""
    rows = connection.execute(_EXPIRED, {"most": most, "after": after})
    return [ExpiredLease(*row) for row in rows]


def _keys(jobs: Iterable[LeasedJob | ExpiredLease]) -> dict[str, str]:
    """The ids and lease numbers as array literals: a driver's array of objects takes twice as long to make."""
    listed = list(jobs)
    return {
        "ids": f"{{{','.join([job.id.hex for job in listed])}}}",
        "seqs": f"{{{','.join([str(job.lease_seq) for job in listed])}}}",
    }


def _prefixed(name: str, jobs: Iterable[LeasedJob]) -> dict[str, str]:
    return {f"{name}_{key}": value for key, value in _keys(jobs).items()}
