"""The plain loop: claim a batch and finish it, straight in SQL, until the table holds no more that is due.

A program of its own, without Django, handlers, fences, heartbeats or a look at anything else: as fast as a
loop over this table can be. `python -m acw.benchmark.ceiling THREADS BATCH keep|delete`, the database in
DATABASE_URL.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import psycopg

from acw.benchmark import gate

_CLAIM = """
UPDATE jobs
SET status = 'running', attempts = attempts + 1, lease_seq = lease_seq + 1, leased_by = 'plain loop',
    lease_until = now() + interval '5 minutes', started_at = now(), updated_at = now()
WHERE id = ANY (ARRAY(
    SELECT id FROM jobs
    WHERE status = 'pending' AND queue = 'default' AND priority = 2 AND run_at <= now()
    ORDER BY run_at, id
    LIMIT %(batch)s
    FOR NO KEY UPDATE SKIP LOCKED
))
RETURNING id, type, payload::text, attempts, lease_seq
"""
_COMPLETE = """
UPDATE jobs
SET status = 'completed', completed_at = now(), updated_at = now(), leased_by = NULL, lease_until = NULL
WHERE id = ANY(%(ids)s)
"""
_DELETE = "DELETE FROM jobs WHERE id = ANY(%(ids)s)"


def main(threads: int, batch: int, *, keep: bool) -> None:
    """Run the loop in so many threads, each with a connection of its own."""
    finish = _COMPLETE if keep else _DELETE
    run = gate.run(lambda: _prepare(batch, finish), threads)
    gate.report({"jobs": sum(run.results), "began": run.began, "ended": run.ended})


def _prepare(batch: int, finish: str) -> Callable[[], int]:
    connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    connection.prepare_threshold = 0

    def drain() -> int:
        done = 0
        cursor = connection.cursor(binary=True)
        while rows := cursor.execute(_CLAIM, {"batch": batch}).fetchall():
            cursor.execute(finish, {"ids": [row[0] for row in rows]})
            done += len(rows)
        return done

    return drain


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), keep=sys.argv[3] == "keep")
