"""What must hold when all is over, as queries for whatever breaks it: SQL alone decides.

``torture_leases`` is every claim with what became of it, and ``torture_executions`` what the handlers say; see :mod:`acw.torture.tables`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg

from acw.torture.job_types import ATOMIC, DELETED, KINDS

SHOWN = 20
"""Rows that are shown of each violation; all of them are in the schema, which is kept."""


@dataclass(frozen=True, kw_only=True)
class Invariant:
    """``promise`` is what holds where ``query`` finds nothing."""

    name: str
    promise: str
    query: str


@dataclass(frozen=True, kw_only=True)
class Violation:
    """The rows that break a promise, the first few of ``count``."""

    name: str
    promise: str
    count: int
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


_COMPLETES = (
    "(new_status = 'completed' OR (old_status = 'running' AND new_status IS NULL))"
)
_TERMINAL = "('completed', 'dead', 'cancelled')"

INVARIANTS = (
    Invariant(
        name="lost",
        promise="no committed job is lost",
        query="""
SELECT produced.ref_id, produced.type, produced.batch FROM torture_produced AS produced
WHERE fate = 'committed' AND NOT EXISTS (SELECT FROM jobs WHERE jobs.ref_id = produced.ref_id)
    AND NOT EXISTS (
        SELECT FROM torture_transitions AS gone
        WHERE gone.ref_id = produced.ref_id AND gone.type = %(deleted)s
            AND gone.old_status = 'running' AND gone.new_status IS NULL
    )
""",
    ),
    Invariant(
        name="rolled back",
        promise="no job is there or runs that was rolled back, or whose key was live",
        query="""
SELECT produced.ref_id, produced.type, produced.fate FROM torture_produced AS produced
WHERE fate IN ('rolled back', 'deduplicated') AND (
    EXISTS (SELECT FROM jobs WHERE jobs.ref_id = produced.ref_id)
    OR EXISTS (SELECT FROM torture_transitions AS seen WHERE seen.ref_id = produced.ref_id)
    OR EXISTS (SELECT FROM torture_executions AS run WHERE run.ref_id = produced.ref_id)
)
""",
    ),
    Invariant(
        name="half a transaction",
        promise="of a transaction whose answer was lost, all jobs are there or none",
        query="""
SELECT batch, count(*) AS enqueued, count(seen.ref_id) AS there FROM torture_produced AS produced
LEFT JOIN (SELECT DISTINCT ref_id FROM torture_transitions) AS seen USING (ref_id)
WHERE fate = 'unknown' GROUP BY batch HAVING count(seen.ref_id) NOT IN (0, count(*))
""",
    ),
    Invariant(
        name="unfinished",
        promise="every job has come to an end",
        query="""
SELECT id, type, status, attempts, max_attempts, run_at, leased_by, lease_until, left(last_error, 80) AS last_error
FROM jobs WHERE status IN ('pending', 'running')
""",
    ),
    Invariant(
        name="completed twice",
        promise="no job is completed twice",
        query=f"""
SELECT job_id, type, count(*) AS times, array_agg(old_lease ORDER BY number) AS leases
FROM torture_transitions WHERE {_COMPLETES} GROUP BY job_id, type HAVING count(*) > 1
""",  # noqa: S608 (constants)
    ),
    Invariant(
        name="completed unexecuted",
        promise="whatever is completed was executed to its end under the lease that completed it",
        query=f"""
SELECT job_id, type, old_lease AS lease, leased_by, at FROM torture_transitions AS completed
WHERE {_COMPLETES} AND NOT EXISTS (
    SELECT FROM torture_executions AS run
    WHERE run.job_id = completed.job_id AND run.lease_seq = completed.old_lease AND run.ending = 'completed'
)
""",  # noqa: S608 (constants)
    ),
    Invariant(
        name="one lease twice",
        promise="nothing is executed twice under one lease",
        query="""
SELECT job_id, type, lease_seq, count(*) AS times, array_agg(pid) AS pids
FROM torture_executions GROUP BY job_id, type, lease_seq HAVING count(*) > 1
""",
    ),
    Invariant(
        name="no lease",
        promise="nothing is executed but by the worker that was given the lease, and after that",
        query="""
SELECT run.job_id, run.type, run.lease_seq, run.pid, lease.leased_by, run.begun_at, lease.claimed_at
FROM torture_executions AS run LEFT JOIN torture_leases AS lease USING (job_id, lease_seq)
WHERE lease.job_id IS NULL OR lease.pid IS DISTINCT FROM run.pid OR run.begun_at < lease.claimed_at
""",
    ),
    Invariant(
        name="unexplained",
        promise="a job is executed again only after its lease ran out, its worker died or stopped, or its handler failed or snoozed",
        query="""
SELECT run.job_id, run.type, run.lease_seq, run.pid, run.ending, lease.claimed_at, lease.ended_at, lease.error
FROM torture_executions AS run JOIN torture_leases AS lease USING (job_id, lease_seq)
WHERE lease.new_status = 'pending' AND NOT (
    lease.expired
    OR coalesce(run.ending = 'snoozed', false)
    OR coalesce(run.ending = 'failed', false) AND lease.error IS NOT NULL
    OR coalesce(lease.error LIKE 'interrupted:%%', false)
    OR coalesce(lease.error LIKE 'worker lost:%%', false) AND EXISTS (
        SELECT FROM torture_processes AS process WHERE process.pid = run.pid AND process.status <> 0
    )
    OR run.type = %(atomic)s AND lease.error IS NOT NULL
)
""",
    ),
    Invariant(
        name="overlap",
        promise="no two executions of a job at once while the lease of the first held",
        query="""
SELECT run.job_id, run.type, run.lease_seq, run.pid, next.lease_seq AS next_lease, next.pid AS next_pid,
    run.begun_at, run.ended_at, next.begun_at AS next_begun_at
FROM torture_executions AS run
JOIN torture_leases AS lease USING (job_id, lease_seq)
JOIN torture_executions AS next ON next.job_id = run.job_id AND next.lease_seq > run.lease_seq
WHERE run.ended_at > next.begun_at AND NOT coalesce(lease.expired, false)
    AND NOT coalesce(lease.error LIKE 'interrupted:%%', false)
""",
    ),
    Invariant(
        name="refund",
        promise="an attempt is given back only for what did not begin, was snoozed, or was cut off by a stop",
        query="""
SELECT run.job_id, run.type, run.lease_seq, run.pid, run.ending, lease.refunded, lease.error
FROM torture_executions AS run JOIN torture_leases AS lease USING (job_id, lease_seq)
WHERE lease.refunded > 0 AND run.ending IS DISTINCT FROM 'snoozed'
    AND NOT coalesce(lease.error LIKE 'interrupted:%%', false)
""",
    ),
    Invariant(
        name="attempts",
        promise="no job has more attempts than it may have",
        query="""
SELECT job_id, type, max(new_attempts) AS attempts, max_attempts FROM torture_transitions
GROUP BY job_id, type, max_attempts HAVING max(new_attempts) > max_attempts
""",
    ),
    Invariant(
        name="after the end",
        promise="nothing changes a job that has come to its end",
        query=f"""
SELECT job_id, type, old_status, new_status, old_lease, new_lease, at FROM torture_transitions
WHERE old_status IN {_TERMINAL}
""",  # noqa: S608 (constants)
    ),
    Invariant(
        name="unleased end",
        promise="a job comes to its end only while a lease of it holds",
        query=f"""
SELECT job_id, type, old_status, new_status, old_lease AS lease, at FROM torture_transitions
WHERE (new_status IN {_TERMINAL} OR new_status IS NULL) AND old_status NOT IN ('running', {_TERMINAL[1:-1]})
""",  # noqa: S608 (constants)
    ),
    Invariant(
        name="wrong end",
        promise="every job ends as its kind ends",
        query="""
SELECT id, jobs.type, status, kind.ends, attempts, left(last_error, 80) AS last_error
FROM jobs LEFT JOIN unnest(%(types)s::text[], %(ends)s::text[]) AS kind (type, ends) USING (type)
WHERE status NOT IN ('pending', 'running') AND status IS DISTINCT FROM kind.ends
""",
    ),
    Invariant(
        name="effects",
        promise="what an atomic handler writes is there once where its job completed, else not at all",
        query="""
SELECT coalesce(jobs.id, effect.job_id) AS job_id, status, count(effect.job_id) AS effects, sum(effect.amount) AS written
FROM (SELECT id, status, payload FROM jobs WHERE type = %(atomic)s) AS jobs
FULL JOIN torture_effects AS effect ON effect.job_id = jobs.id
GROUP BY jobs.id, effect.job_id, status, payload
HAVING count(effect.job_id) <> CASE WHEN status = 'completed' THEN 1 ELSE 0 END
    OR sum(effect.amount) IS DISTINCT FROM CASE WHEN status = 'completed' THEN (payload ->> 'amount')::bigint END
""",
    ),
    Invariant(
        name="unique keys",
        promise="no two jobs with one key are live at once",
        query=f"""
WITH life AS (
    SELECT job_id, unique_key, min(number) FILTER (WHERE old_status IS NULL) AS born,
        min(number) FILTER (WHERE new_status IN {_TERMINAL} OR new_status IS NULL) AS ended
    FROM torture_transitions WHERE unique_key IS NOT NULL GROUP BY job_id, unique_key
)
SELECT first.unique_key, first.job_id, second.job_id AS second_job_id
FROM life AS first JOIN life AS second USING (unique_key)
WHERE second.born > first.born AND (first.ended IS NULL OR second.born < first.ended)
""",  # noqa: S608 (constants)
    ),
    Invariant(
        name="too early",
        promise="no job is taken before it is due",
        query="SELECT job_id, type, lease_seq, leased_by, due, claimed_at FROM torture_leases WHERE claimed_at < due",
    ),
    Invariant(
        name="ticks",
        promise="no tick begins whose end is recorded, and none is recorded twice",
        query="""
SELECT ended.slot, ended.worker, ended.at, again.pid AS again_pid, again.begun_at AS again_at
FROM torture_tick_ends AS ended JOIN torture_ticks AS again USING (slot)
WHERE ended.runner = 'torture_tick' AND again.begun_at > ended.at
UNION ALL
SELECT slot, min(worker), min(at), NULL, max(at) FROM torture_tick_ends
GROUP BY runner, slot HAVING count(*) > 1
""",
    ),
    Invariant(
        name="processes",
        promise="no worker ends but by what was done to it",
        query="SELECT pid, status, started_at, ended_at, log FROM torture_processes WHERE NOT expected",
    ),
)

_PARAMETERS = {
    "deleted": DELETED,
    "atomic": ATOMIC,
    "types": list(KINDS),
    "ends": [kind.ends for kind in KINDS.values()],
}


def violations(connection: psycopg.Connection[Any]) -> list[Violation]:
    """What is broken; [] where all promises were kept."""
    found = []
    for invariant in INVARIANTS:
        cursor = connection.execute(invariant.query, _PARAMETERS)
        rows = cursor.fetchall()
        if rows:
            found.append(
                Violation(
                    name=invariant.name,
                    promise=invariant.promise,
                    count=len(rows),
                    columns=tuple(column.name for column in cursor.description or ()),
                    rows=rows[:SHOWN],
                )
            )
    return found
