"""What the queue's tests share: claims, leased jobs, and awaiting what other threads do."""

from __future__ import annotations

import datetime as dt
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from django.db import connection

from jobs import claims, leases
from jobs.claims import Claim
from jobs.connection import Executes
from jobs.context import JobContext
from jobs.enqueue import NewJob, enqueue, enqueue_many
from jobs.identifiers import uuid7
from jobs.lease_lengths import LeaseLengths
from jobs.leases import LeasedJob
from jobs.models import Priority
from jobs.pool import Pool
from jobs.registry import job_handler
from jobs.testing import PATIENCE


def claim_for(
    worker: str = "w1",
    *,
    types: tuple[str, ...] = ("test.noop",),
    queues: dict[str, int] | None = None,
    lease: dt.timedelta = dt.timedelta(minutes=5),
    own_leases: Mapping[str, dt.timedelta] | None = None,
    cost: float = 0.001,
) -> Claim:
    """What a worker asks for."""
    return Claim(
        worker=worker,
        leases=LeaseLengths(lease, own_leases or {}),
        limits={
            (queue, level): most
            for queue, most in (queues or {"default": 100}).items()
            for level in Priority
        },
        costs=dict.fromkeys(types, cost),
    )


def add(count: int = 1, **fields: Any) -> list[uuid.UUID]:
    """Enqueue jobs that do nothing; return their ids."""
    return enqueue_many([NewJob(type="test.noop", **fields) for _ in range(count)])


def claim_one(connection: Executes, worker: str = "w1") -> LeasedJob:
    """Lease the one job that is due."""
    (job,) = claims.claim(connection, claim_for(worker, queues={"default": 1}))
    return job


def complete(connection: Executes, *jobs: LeasedJob) -> set[uuid.UUID]:
    """Complete them; return the ids of those whose lease still held."""
    lost = leases.complete(connection, leases.completion(jobs))
    return {job.id for job in jobs} - lost


def leased_job(**values: Any) -> LeasedJob:
    """A job as a claim returns it, without a row."""
    now = dt.datetime.now(dt.UTC)
    defaults: dict[str, Any] = {
        "id": uuid7(),
        "type": "test.noop",
        "ref_id": None,
        "queue": "default",
        "priority": 2,
        "payload": "{}",
        "attempts": 1,
        "max_attempts": 5,
        "lease_seq": 1,
        "run_at": now,
        "created_at": now,
    }
    return LeasedJob(**{**defaults, **values})


def rows_of_every_kind() -> None:
    """A table in which a wrong plan would show: jobs of every status, due and not."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO jobs (id, type, queue, priority, status, run_at, completed_at,
                lease_until, payload)
            SELECT gen_random_uuid(), 'test.noop', (ARRAY['default', 'a', 'b'])[n %% 3 + 1],
                n %% 4, kind.status, now() + kind.due, kind.completed_at, kind.lease_until, '{}'
            FROM generate_series(1, 20000) AS n
            CROSS JOIN (VALUES
                ('pending', interval '-1 hour', NULL::timestamptz, NULL::timestamptz),
                ('pending', interval '1 hour', NULL, NULL),
                ('running', interval '-1 hour', NULL, now() + interval '1 hour'),
                ('completed', interval '-1 hour', now(), NULL),
                ('dead', interval '-1 hour', now(), NULL)
            ) AS kind (status, due, completed_at, lease_until)
            WHERE kind.status <> 'running' OR n <= 40
            """,
            [],
        )
        cursor.execute("ANALYZE jobs")


def explain(query: str, parameters: dict[str, Any]) -> str:
    """The plan by which the statement was just run, as JSON."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + query, parameters)
        return json.dumps(cursor.fetchone()[0])


def somebody_waits_for_a_lock() -> bool:
    """Whether any session of the server's does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        waits: bool = cursor.fetchone()[0]
    return waits


@contextmanager
def one_waiting(pool: Pool) -> Iterator[JobContext]:
    """The context of a handler that the pool runs, which waits until it is told to stop; ends the pool afterwards."""
    begun: SimpleQueue[JobContext] = SimpleQueue()

    @job_handler("test.waits")
    def waits(context: JobContext, payload: Any) -> None:
        begun.put(context)
        context.wait(dt.timedelta(seconds=PATIENCE))
        context.check_cancelled()

    enqueue("test.waits")
    pool.start()
    try:
        yield begun.get(timeout=PATIENCE)
    finally:
        pool.stop()
        pool.join(time.monotonic() + PATIENCE)
        pool.close()
