"""What handlers note of themselves: on a connection of their own, in autocommit, so that it survives whatever befalls them.

Each statement is tried until the database has taken it. Every execution has an id of its own: written twice, since the answer was
lost, it is there once.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jobs.connection import UNAVAILABLE, QueueConnection
from jobs.context import JobContext
from jobs.exceptions import LeaseLost, Snooze

PATIENCE = 60.0
"""Seconds after which the database is given up; the execution then fails."""

_PAUSE = 0.1
_BEGIN = """
INSERT INTO torture_executions (id, job_id, ref_id, type, lease_seq, attempt, pid)
VALUES (%(id)s, %(job_id)s, %(ref_id)s, %(type)s, %(lease_seq)s, %(attempt)s, %(pid)s)
ON CONFLICT (id) DO NOTHING
"""
_END = """
UPDATE torture_executions SET ended_at = clock_timestamp(), ending = %(ending)s, error = %(error)s
WHERE id = %(id)s AND ended_at IS NULL
"""
_BEGIN_TICK = """
INSERT INTO torture_ticks (id, slot, pid)
SELECT %(id)s, CASE WHEN split_part(last_worker, ':', 2) = %(pid)s::text THEN next_run_at END, %(pid)s
FROM job_runners WHERE name = %(name)s
ON CONFLICT (id) DO NOTHING
"""
_END_TICK = "UPDATE torture_ticks SET ended_at = clock_timestamp() WHERE id = %(id)s AND ended_at IS NULL"

_mine = threading.local()


@contextmanager
def execution(context: JobContext) -> Iterator[None]:
    """Notes that the block begins, and how it ends."""
    number = uuid.uuid4()
    _write(
        _BEGIN,
        {
            "id": number,
            "job_id": context.job_id,
            "ref_id": context.ref_id,
            "type": context.type,
            "lease_seq": context.lease_seq,
            "attempt": context.attempt,
            "pid": os.getpid(),
        },
        give_up=context.check_lease,
    )
    ending, told = "completed", None
    try:
        yield
    except Snooze:
        ending = "snoozed"
        raise
    except LeaseLost:
        ending = "lease lost"
        raise
    except BaseException as error:
        ending, told = "failed", f"{type(error).__name__}: {error}"
        raise
    finally:
        _write(
            _END,
            {"id": number, "ending": ending, "error": told},
            give_up=context.check_lease,
        )


@contextmanager
def tick(name: str) -> Iterator[None]:
    """Notes a tick of the runner: the schedule has moved on to the next when it begins."""
    number = uuid.uuid4()
    _write(_BEGIN_TICK, {"id": number, "pid": os.getpid(), "name": name})
    yield
    _write(_END_TICK, {"id": number})


def _write(
    statement: str,
    parameters: dict[str, object],
    *,
    give_up: Callable[[], None] = lambda: None,
) -> None:
    if not hasattr(_mine, "connection"):
        _mine.connection = QueueConnection()
    connection: QueueConnection = _mine.connection
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute(statement, parameters)
        except UNAVAILABLE:
            if time.monotonic() > deadline:
                raise
        else:
            return
        give_up()
        time.sleep(_PAUSE)
