"""What time it is for tasks: the database's, at this moment and not at the transaction's beginning.

A transaction that waited for another one's lock must not decide by the time from before the wait.
"""

from __future__ import annotations

import datetime as dt

from django.db import connection


def now() -> dt.datetime:
    """The database's time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (at,) = cursor.fetchone()
    return at  # type: ignore[no-any-return]
