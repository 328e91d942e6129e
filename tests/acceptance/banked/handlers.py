"""``test.book`` adds its amount to a balance and notes that it did; ``test.book_gone`` is not kept when it has."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass

from django.db import connection

from jobs.context import JobContext
from jobs.registry import job_handler


@dataclass
class Booking:
    account: int
    amount: int


@job_handler("test.book", atomic=True)
def book(context: JobContext, payload: Booking) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE accounts SET balance = balance + %s WHERE id = %s",
            [payload.amount, payload.account],
        )
        # Time in which to be killed.
        context.wait(dt.timedelta(milliseconds=1))
        cursor.execute(
            "INSERT INTO bookings (job, pid) VALUES (%s, %s)",
            [context.job_id, os.getpid()],
        )


job_handler("test.book_gone", atomic=True, keep_completed=False)(book)
