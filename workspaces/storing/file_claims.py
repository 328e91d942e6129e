"""Who may do something about one file of the attachments' storage: locks by its name, until the transaction ends.

Who attaches holds the file's from before its first byte until its row is committed. So the sweep, which deletes files that
have no row, never takes one whose row is not visible yet, however long its transaction takes.
"""

from __future__ import annotations

from django.db import connection

_KEY = "hashtextextended('attachments:' || %s, 0)"


def claim(name: str) -> None:
    """Have the file for this transaction, after waiting for who has it."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_advisory_xact_lock({_KEY})", [name])


def try_claim(name: str) -> bool:
    """The same without waiting; False: somebody has it."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT pg_try_advisory_xact_lock({_KEY})", [name])
        (claimed,) = cursor.fetchone()
    return bool(claimed)
