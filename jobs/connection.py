"""The queue's own connections: apart from those that handlers use, in autocommit.

What a handler leaves behind on its connection (an open transaction, a SET, an aborted state) can so never
reach the statements by which a job is claimed and finished.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

import psycopg
from django.db import (
    DEFAULT_DB_ALIAS,
    Error,
    InterfaceError,
    OperationalError,
    connections,
)
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.types.datetime import TimestamptzLoader

from jobs.events import LogEvent
from jobs.riding import Riding, Write

log = logging.getLogger(__name__)

UNAVAILABLE: tuple[type[Exception], ...] = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    # A primary that failed over answers as a read-only server: the connection must go.
    psycopg.errors.ReadOnlySqlTransaction,
    # The server has ended a session that was suspended in the middle of a transaction.
    psycopg.errors.IdleInTransactionSessionTimeout,
    OperationalError,
    InterfaceError,
)
"""What is raised while the database is away, restarting or failing over; try again later."""

_AWAY_STATES = ("08", "57P0", "25006", "25P03", "53300")
"""SQLSTATEs, or their beginnings: connection lost, server shutting down, read-only, idle for too long, too many connections."""

_PREPARED_FROM = 2
"""Executions after which a statement is prepared: to plan a claim takes longer than to run it."""

_STALE_PLAN: tuple[type[Exception], ...] = (
    # "cached plan must not change result type", after a migration
    psycopg.errors.FeatureNotSupported,
    # forgotten, or never known, by the server that answers now
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.DuplicatePreparedStatement,
)
"""What is raised where a prepared statement is not any more what it was when it was prepared."""

_READ_ONLY = b"default_transaction_read_only"

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0


def is_away(error: BaseException) -> bool:
    """Whether the error says that the database is away, and not that it refused one statement.

    Both come as OperationalError: a lock timeout or a deadlock too. Without an SQLSTATE it is the
    connection that failed. Django wraps the driver's error, which is then the cause.
    """
    driver = error if isinstance(error, psycopg.Error) else error.__cause__
    if not isinstance(driver, psycopg.Error):
        return isinstance(error, UNAVAILABLE)
    state = driver.sqlstate
    if state is None:
        return isinstance(driver, UNAVAILABLE)
    return state.startswith(_AWAY_STATES)


def is_caused_by_outage(error: BaseException) -> bool:
    """Whether the error, or one that it was raised from or beside, says that the database is away."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        if is_away(found):
            return True
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return False


class Executes(Protocol):
    """What the queue's statements need of a connection."""

    def execute(
        self, query: str, parameters: Sequence[Any] | dict[str, Any]
    ) -> list[Any]: ...


class QueueConnection:
    """One connection in autocommit, opened when first used and again after a failure.

    Not for use by two threads at once. Statements raise psycopg's errors.
    """

    def __init__(self, alias: str = DEFAULT_DB_ALIAS) -> None:
        self._alias = alias
        self._wrapper: BaseDatabaseWrapper | None = None
        self._cursor: psycopg.Cursor[Any] | None = None
        self._read_only: bytes | None = None
        self._riding = Riding()

    def __enter__(self) -> QueueConnection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection, sound or not."""
        return self._wrapper is not None and self._wrapper.connection is not None

    def raw(self) -> psycopg.Connection[Any]:
        """The open psycopg connection, opened now where there is none."""
        if self._wrapper is None:
            self._wrapper = connections.create_connection(self._alias)
            # Opened by one thread and closed by another when a process stops.
            self._wrapper.inc_thread_sharing()
        if self._wrapper.connection is None or self._wrapper.connection.closed:
            self._wrapper.close()
            self._wrapper.connect()
            if is_direct(self._wrapper.connection):
                self._wrapper.connection.prepare_threshold = _PREPARED_FROM
            self._read_only = self._wrapper.connection.pgconn.parameter_status(
                _READ_ONLY
            )
        connection: psycopg.Connection[Any] = self._wrapper.connection
        return connection

    def check_writable(self) -> None:
        """Raise what ``UNAVAILABLE`` holds where the server has turned read-only since the connection was made.

        As an old primary does that a failover has left running. Whoever only listens or notifies is served there still, and
        nobody hears. The server has said so with the answer to an earlier statement: no round trip is made.
        """
        now = self.raw().pgconn.parameter_status(_READ_ONLY)
        if now == b"on" and self._read_only != now:
            raise psycopg.errors.ReadOnlySqlTransaction(
                "the server takes no more writes, as one that a failover has replaced"
            )

    def execute(
        self, query: str, parameters: Sequence[Any] | dict[str, Any]
    ) -> list[Any]:
        """Run one statement, bound on the server's side, and return its rows ([] for none).

        What waits to ride along is written with it, or before it.
        """
        if self._riding:
            together = self._riding.together(query, parameters)
            if together is not None:
                try:
                    rows = self._execute_afresh(*together)
                except psycopg.Error as error:
                    if is_away(error):
                        raise
                    # Which of the two was refused is not known.
                else:
                    self._riding.clear()
                    return rows
            self.write_waiting()
        return self._execute_afresh(query, parameters)

    def ride_along(self, write: Write, row: Mapping[str, Any]) -> None:
        """Have this written with the next statement, which must come soon: until then it is in memory alone."""
        if self._riding and self._riding.write is not write:
            self.write_waiting()
        self._riding.add(write, row)

    def write_waiting(self) -> None:
        """Write now what waits to ride along; what the server refuses is logged, and given up."""
        if not self._riding:
            return
        try:
            self._execute_afresh(*self._riding.alone())
        except psycopg.Error as error:
            if is_away(error):
                raise
            log.exception(LogEvent.FINISH_FAILED)
        self._riding.clear()

    def _execute_afresh(
        self, query: str, parameters: Sequence[Any] | dict[str, Any]
    ) -> list[Any]:
        try:
            return self._execute(query, parameters)
        except _STALE_PLAN:
            # Refused before anything was done, and in autocommit nothing was done before it.
            self.close()
            return self._execute(query, parameters)

    def _execute(
        self, query: str, parameters: Sequence[Any] | dict[str, Any]
    ) -> list[Any]:
        try:
            connection = self.raw()
            self.check_writable()
            if self._cursor is None or self._cursor.connection is not connection:
                self._cursor = psycopg.Cursor(connection)
                # Django puts loaders of its own into the connection, which run in Python for each value.
                self._cursor.adapters.register_loader("timestamptz", TimestamptzLoader)
            self._cursor.execute(query, parameters)
            result = self._cursor.pgresult
            # Not `description`, which is made of objects for all columns.
            return self._cursor.fetchall() if result and result.nfields else []
        except UNAVAILABLE:
            self.close()
            raise

    def close(self) -> None:
        """Close it; the next statement opens a new one."""
        self._cursor = None
        wrapper, self._wrapper = self._wrapper, None
        if wrapper is not None:
            try:
                wrapper.close()
            except (psycopg.Error, Error):
                log.debug("closing a broken connection failed", exc_info=True)


def is_direct(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server itself is at the other end, and not a pooler.

    A pooler answers for many servers' processes, and so gives out keys for cancelling of its own: their process id is none of the
    server's. It may run each transaction on another connection, where a prepared statement is missing or is
    somebody else's.
    """
    with psycopg.Cursor(connection) as cursor:
        row = cursor.execute("SELECT pg_backend_pid()").fetchone()
    return row is not None and row[0] == connection.info.backend_pid


class Outage:
    """Rides out a database that is away: logs its start and its end once, and spaces the tries.

    ``part`` names who is waiting, for the log.
    """

    def __init__(self, part: str) -> None:
        self._part = part
        self._failures = 0

    def failed(self, error: Exception) -> float:
        """Note one failure; return how many seconds to wait before the next try."""
        self._failures += 1
        if self._failures == 1:
            log.warning(
                LogEvent.DATABASE_UNAVAILABLE,
                extra={
                    "part": self._part,
                    "error": f"{type(error).__name__}: {error}".strip(),
                },
            )
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failures - 1, 10))
        return pause * random.uniform(0.5, 1)  # noqa: S311 (spreads the reconnects)

    def passed(self) -> None:
        """Note that the database answers."""
        if self._failures:
            log.warning(
                LogEvent.DATABASE_RECOVERED,
                extra={"part": self._part, "failures": self._failures},
            )
            self._failures = 0


class TransactionConnection:
    """Runs the queue's statements on Django's own connection, in the transaction that is open there."""

    def __init__(self, alias: str = DEFAULT_DB_ALIAS) -> None:
        self._alias = alias

    def execute(
        self, query: str, parameters: Sequence[Any] | dict[str, Any]
    ) -> list[Any]:
        """Run one statement and return its rows ([] for none)."""
        with connections[self._alias].cursor() as cursor:
            cursor.execute(query, parameters)
            return cursor.fetchall() if cursor.description is not None else []
