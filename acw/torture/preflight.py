"""What a server must offer, asked before anything is made there."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from acw.scratch.schema import Parameters
from acw.torture.errors import TortureError
from jobs.connection import is_direct

_PARTS = 8
"""Sessions of a worker besides those of its threads: its parts, ticks, what opens one for a moment."""

_PER_THREAD = 3
"""The queue's own, that of the handler, and that of the ledger."""

_OTHERS = 10
"""The producer's, those of this process, and room for sessions that the server has not given up yet."""

_READ_ONLY = (
    "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"
)
_FREE = """
SELECT least(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
    CASE WHEN rolconnlimit >= 0 THEN rolconnlimit
        - (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user) END,
    CASE WHEN datconnlimit >= 0 THEN datconnlimit
        - (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()) END
)
FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()
"""


def sessions(workers: int, threads: int) -> int:
    """How many a run has open at most, as a rule: one worker more is there where a new one comes up beside one that ends."""
    return (workers + 1) * (threads * _PER_THREAD + _PARTS) + _OTHERS


def check(server: Parameters, *, workers: int, threads: int) -> None:
    """Raise TortureError where the server can't be used, which says what to do."""
    with psycopg.connect(make_conninfo(**server), autocommit=True) as connection:
        if not is_direct(connection):
            raise TortureError(
                "DATABASE_URL leads to a pooler, which keeps neither the schema of a session nor its name:"
                " set it to PostgreSQL itself for this command"
            )
        if _one(connection, _READ_ONLY):
            raise TortureError(
                "the server takes no writes, it is a standby or read-only: set DATABASE_URL to the primary"
            )
        wanted, free = sessions(workers, threads), _one(connection, _FREE)
        if free < wanted:
            raise TortureError(
                f"{workers} workers of {threads} threads may open {wanted} sessions at once, and the server has room for"
                f" {free}: fewer --workers, or a higher max_connections"
            )


def _one(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query).fetchone()
    return row[0] if row else None
