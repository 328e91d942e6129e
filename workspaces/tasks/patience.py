"""How long the worker waits for a task that somebody else is changing: not long, or one forgotten transaction holds up all deadlines."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import OperationalError, transaction

from jobs.bounded import limit_locks
from jobs.connection import TransactionConnection
from workspaces.tasks.exceptions import TaskBusy

LONGEST_WAIT = dt.timedelta(seconds=2)
"""For one lock."""

AGAIN_AFTER = dt.timedelta(seconds=5)
"""A job that has waited in vain comes back then."""


@contextmanager
def impatient(task_id: int) -> Iterator[None]:
    """A transaction that gives up waiting for a lock; raises :class:`~workspaces.tasks.exceptions.TaskBusy` then."""
    try:
        with transaction.atomic():
            milliseconds = LONGEST_WAIT // dt.timedelta(milliseconds=1)
            limit_locks(TransactionConnection(), f"{milliseconds}ms")
            yield
    except OperationalError as error:
        if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
            raise
        raise TaskBusy(
            f"task {task_id} is being changed by somebody else, whose transaction is open for longer than "
            f"{LONGEST_WAIT.total_seconds():g} s; tried again later"
        ) from error
