"""What a run has seen, in figures: read from what was noted, by the database's clock."""

from __future__ import annotations

from typing import Any

import psycopg

_COUNTS = """
SELECT
    (SELECT count(*) FROM torture_produced WHERE fate = 'committed'),
    (SELECT count(*) FROM torture_produced WHERE fate = 'rolled back'),
    (SELECT count(*) FROM torture_produced WHERE fate = 'unknown'),
    (SELECT count(*) FROM torture_produced WHERE fate = 'deduplicated'),
    (SELECT count(*) FROM torture_executions),
    (SELECT count(*) FROM torture_leases WHERE expired AND new_status <> 'completed'),
    (SELECT count(*) FROM torture_leases WHERE error LIKE 'worker lost:%' AND NOT expired),
    (SELECT count(*) FROM torture_leases AS lease WHERE refunded > 0 AND NOT EXISTS (
        SELECT FROM torture_executions AS run WHERE run.job_id = lease.job_id AND run.lease_seq = lease.lease_seq
    )),
    (SELECT count(*) FROM torture_processes),
    (SELECT count(*) FROM torture_ticks)
"""
_COUNTED = (
    "jobs committed",
    "jobs rolled back",
    "jobs of unknown fate",
    "jobs whose key was live",
    "executions",
    "leases expired",
    "leases taken back from dead workers",
    "leases given back unbegun",
    "worker processes",
    "ticks",
)
_ENDS = "SELECT 'jobs ' || status, count(*) FROM jobs GROUP BY status ORDER BY status"
_DELETED = """
SELECT count(*) FROM torture_transitions WHERE old_status = 'running' AND new_status IS NULL
"""
_FAULTS = "SELECT fault, count(*) FROM torture_faults GROUP BY fault ORDER BY fault"
_AGAIN = """
SELECT count(*), max(times) FROM (
    SELECT count(*) AS times FROM torture_executions GROUP BY job_id HAVING count(*) > 1
) AS repeated
"""
_SPEED = """
SELECT (count(*) / nullif(extract(epoch FROM max(at) - min(at)), 0))::float8
FROM torture_transitions WHERE old_status = 'running' AND new_status IS DISTINCT FROM 'pending'
"""
# From the moment at which a job could be taken to its handler's first line.
_PICK_UP = """
SELECT percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY extract(epoch FROM begun_at - greatest(lease.due, born.at)))
FROM torture_executions JOIN torture_leases AS lease USING (job_id, lease_seq)
JOIN torture_transitions AS born ON born.job_id = lease.job_id AND born.old_status IS NULL
"""
_DURATION = """
SELECT percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY extract(epoch FROM ended_at - begun_at))
FROM torture_executions WHERE ended_at IS NOT NULL
"""


def read(connection: psycopg.Connection[Any]) -> dict[str, float]:
    """The figures by name; times are in seconds."""
    counts = connection.execute(_COUNTS).fetchone() or ()
    figures: dict[str, float] = dict(zip(_COUNTED, counts, strict=True))
    figures |= dict(connection.execute(_ENDS))
    figures["jobs completed and deleted"] = _one(connection, _DELETED)
    again, most = connection.execute(_AGAIN).fetchone() or (0, None)
    figures["jobs executed more than once"] = again
    figures["most executions of a job"] = most or 1
    figures |= {f"fault: {name}": count for name, count in connection.execute(_FAULTS)}
    figures["jobs/s"] = _one(connection, _SPEED)
    for name, query in (("pick-up", _PICK_UP), ("duration", _DURATION)):
        median, high = _one(connection, query) or (0.0, 0.0)
        figures[f"{name} p50"], figures[f"{name} p99"] = float(median), float(high)
    return figures


def _one(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query).fetchone()
    return row[0] if row and row[0] is not None else 0
