"""For the tests of every app: run what is due, and wait for what other threads or processes do."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from typing import TypeVar

from django.db import connection

from jobs import claims, registry
from jobs.claims import Claim
from jobs.connection import Executes, QueueConnection, TransactionConnection
from jobs.execution import Execution
from jobs.finisher import write
from jobs.handler_connections import HandlerConnections
from jobs.lease_lengths import LeaseLengths
from jobs.leases import LeasedJob
from jobs.models import Job, Priority
from jobs.selection import Queues

T = TypeVar("T")

WORKER = "run_due_jobs"
PATIENCE = 20.0
"""Seconds after which a test gives up on what should come at once."""

_LEASE = dt.timedelta(minutes=5)
_BATCH = 100
_PAUSE = 0.01
_LONGEST_PAUSE = 0.05


def run_due_jobs(
    *, queues: Iterable[str] | None = None, at_most: int = 1_000
) -> list[Job]:
    """Claim and execute what is due, and what that makes due, through the worker's own parts.

    Runs in this thread, and on the test's connection where a test's transaction is open. ``queues`` None
    is every queue but other hosts'. Returns the jobs as they are afterwards, in the order of
    their last executions. Raises AssertionError after ``at_most`` executions, which never end by themselves.
    """
    if connection.in_atomic_block:
        return _run(TransactionConnection(), Queues(queues), at_most)
    with QueueConnection() as own:
        return _run(own, Queues(queues), at_most)


def _run(connection_: Executes, queues: Queues, at_most: int) -> list[Job]:
    executed: dict[uuid.UUID, None] = {}
    count = 0
    while batch := _claim(connection_, queues):
        for leased in batch:
            count += 1
            if count > at_most:
                raise AssertionError(
                    f"still due after {at_most} executions: {leased.type}"
                )
            executed.pop(leased.id, None)
            executed[leased.id] = None
            outcome = Execution(leased).run(HandlerConnections())
            if outcome is not None:
                write(connection_, [(leased, outcome)], worker=WORKER)
    jobs = Job.objects.in_bulk(list(executed))
    return [jobs[pk] for pk in executed if pk in jobs]


def _claim(connection_: Executes, queues: Queues) -> list[LeasedJob]:
    queues.discover(claims.pending_queues(connection_))
    wanted = Claim(
        worker=WORKER,
        leases=LeaseLengths(_LEASE, registry.own_leases()),
        limits={(name, level): _BATCH for name in queues.names() for level in Priority},
        costs=dict.fromkeys(registry.job_types(), claims.BATCH_SECONDS / _BATCH),
    )
    return claims.claim(connection_, wanted)


def wait_until(
    condition: Callable[[], T], what: str = "", *, timeout: float = PATIENCE
) -> T:
    """Ask again and again, more and more seldom, until ``condition`` gives something true, and return that.

    Raises AssertionError, naming ``what``, after ``timeout`` seconds.
    """
    deadline = time.monotonic() + timeout
    pause = _PAUSE
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what or condition}")
        threading.Event().wait(pause)
        pause = min(pause * 1.2, _LONGEST_PAUSE)
    return value
