"""One client process that puts jobs into the queue, in the product's way or by plain SQL.

`python -m acw.benchmark.clients KIND THREADS COUNT wake|quiet`: each thread has a connection of its own and adds COUNT
jobs. Only the product's kinds load Django.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg

from acw.benchmark import gate
from acw.benchmark.job_types import NOOP
from jobs.identifiers import uuid7

BULK = 1_000
"""Jobs in one statement of the bulk kinds."""

_COLUMNS = (
    "id, type, ref_id, queue, priority, payload, max_attempts, run_at, unique_key"
)
_INSERT = f"""
INSERT INTO jobs ({_COLUMNS})
VALUES (%s, %s, %s, %s, %s, %s, %s, statement_timestamp(), %s)
"""  # noqa: S608 - a constant
_UNNEST = f"""
INSERT INTO jobs ({_COLUMNS})
SELECT id, type, ref_id, queue, priority, payload, max_attempts, statement_timestamp(), unique_key
FROM unnest(
    %s::uuid[], %s::text[], %s::text[], %s::text[], %s::smallint[], %s::jsonb[], %s::integer[], %s::text[]
) AS new (id, type, ref_id, queue, priority, payload, max_attempts, unique_key)
"""  # noqa: S608 - a constant
_REST = (NOOP, None, "default", 2, "{}", 5, None)

Add = Callable[[int], None]


def insert() -> Add:
    """A bare INSERT for each job, of the row that `enqueue` writes."""
    connection = _connect()

    def add(count: int) -> None:
        for _ in range(count):
            connection.execute(_INSERT, (uuid7(), *_REST))

    return add


def unnest() -> Add:
    """A bare INSERT of ``BULK`` such rows at once."""
    connection = _connect()

    def add(count: int) -> None:
        for _ in range(count // BULK):
            ids = [uuid7() for _ in range(BULK)]
            connection.execute(_UNNEST, (ids, *([value] * BULK for value in _REST)))

    return add


def enqueue() -> Add:
    """`jobs.enqueue.enqueue`, in autocommit."""
    from jobs.enqueue import enqueue

    _connect_django()

    def add(count: int) -> None:
        for _ in range(count):
            enqueue(NOOP, {})

    return add


def enqueue_many() -> Add:
    """`jobs.enqueue.enqueue_many`, ``BULK`` a call."""
    from jobs.enqueue import NewJob, enqueue_many

    _connect_django()

    def add(count: int) -> None:
        for _ in range(count // BULK):
            enqueue_many([NewJob(type=NOOP, payload={}) for _ in range(BULK)])

    return add


KINDS: dict[str, Callable[[], Add]] = {
    "insert": insert,
    "unnest": unnest,
    "enqueue": enqueue,
    "enqueue_many": enqueue_many,
}
"""Each makes, in the thread that is to use it, what adds so many jobs."""


def main(kind: str, threads: int, count: int, *, wake: bool) -> None:
    """Add ``count`` jobs in each of so many threads, all at the word of the parent."""
    if kind.startswith("enqueue"):
        _set_up_django(wake=wake)
    run = gate.run(lambda: partial(KINDS[kind](), count), threads)
    gate.report({"began": run.began, "ended": run.ended})


def _connect() -> psycopg.Connection[Any]:
    connection = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
    connection.prepare_threshold = 0
    return connection


def _set_up_django(*, wake: bool) -> None:
    import django

    django.setup()
    from jobs import wakeup

    if not wake:
        wakeup.wake = _wake_nobody
        wakeup.take_along = _take_none_along


def _wake_nobody(queues: object) -> None:
    """In the place of `jobs.wakeup.wake` where notifications are to be off."""


def _take_none_along() -> bool:
    """In the place of `jobs.wakeup.take_along`."""
    return False


def _connect_django() -> None:
    from django.db import connection

    connection.ensure_connection()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), wake=sys.argv[4] == "wake")
