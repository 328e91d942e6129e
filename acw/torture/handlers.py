"""The handlers: each notes itself in the ledger, and does what its kind does."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass

from django.db import connection

from acw.torture import ledger
from acw.torture.job_types import (
    ATOMIC,
    DELETED,
    EXIT_STATUS,
    EXITING,
    FLAKY,
    HOPELESS,
    MANY,
    QUICK,
    SLOW,
    SNOOZING,
)
from jobs.context import JobContext
from jobs.exceptions import Snooze
from jobs.registry import job_handler

_SNOOZE = dt.timedelta(milliseconds=200)


class TortureFailure(Exception):
    """The failure of a job that is to fail."""


@dataclass
class Seconds:
    seconds: float


@dataclass
class Times:
    times: int


@dataclass
class Amount:
    amount: int


@job_handler(QUICK, max_attempts=MANY)
def quick(context: JobContext, payload: dict[str, object]) -> None:
    """Is noted."""
    with ledger.execution(context):
        pass


@job_handler(DELETED, max_attempts=MANY, keep_completed=False)
def deleted(context: JobContext, payload: dict[str, object]) -> None:
    """Is noted, and leaves no row."""
    with ledger.execution(context):
        pass


@job_handler(SLOW, max_attempts=MANY)
def slow(context: JobContext, payload: Seconds) -> None:
    """Takes so long, and doesn't ask whether another worker has its job by now: its result must be refused."""
    with ledger.execution(context):
        context.wait(dt.timedelta(seconds=payload.seconds))


@job_handler(FLAKY, max_attempts=MANY)
def flaky(context: JobContext, payload: Times) -> None:
    """Fails so often, then completes."""
    with ledger.execution(context):
        if context.attempt <= payload.times:
            raise TortureFailure(f"attempt {context.attempt} of {payload.times}")


@job_handler(HOPELESS, max_attempts=2)
def hopeless(context: JobContext, payload: dict[str, object]) -> None:
    """Fails until its attempts are used up."""
    with ledger.execution(context):
        raise TortureFailure("it never works")


@job_handler(SNOOZING, max_attempts=MANY)
def snoozing(context: JobContext, payload: Times) -> None:
    """Asks for later under its first leases, so many, then completes."""
    with ledger.execution(context):
        if context.lease_seq <= payload.times:
            raise Snooze(_SNOOZE)


@job_handler(EXITING, max_attempts=2)
def exiting(context: JobContext, payload: dict[str, object]) -> None:
    """Ends its process."""
    with ledger.execution(context):
        os._exit(EXIT_STATUS)


@job_handler(ATOMIC, max_attempts=MANY, atomic=True)
def atomic(context: JobContext, payload: Amount) -> None:
    """Writes an effect, in the transaction that completes its job."""
    with ledger.execution(context), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO torture_effects (job_id, lease_seq, amount) VALUES (%s, %s, %s)",
            [context.job_id, context.lease_seq, payload.amount],
        )
