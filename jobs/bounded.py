"""The connection of a side thread: a statement that takes too long there is given up by the server.

So a lock that an operator holds (``ALTER TABLE``, ``LOCK TABLE``) keeps no thread waiting without a sign of life, and no
shutdown from its end.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS

from jobs.connection import Executes, QueueConnection
from jobs.progress import Progress, longest_statement

# The second is for a process that is suspended between two statements: its locks would last as long.
_BOUND = """
SELECT set_config('statement_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true)
"""
_LOCKS = "SELECT set_config('lock_timeout', %s, true)"


def lock_limit() -> str:
    """How long a statement of a side thread waits for a lock, as ``lock_timeout`` takes it."""
    return f"{max(1, round(longest_statement() * 1000))}ms"


def limit_locks(connection: Executes, limit: str) -> None:
    """Have the rest of the open transaction give up waiting for a lock after that; ``0`` is for ever."""
    connection.execute(_LOCKS, [limit])


class NoAnswerError(psycopg.OperationalError):
    """The database is there, and did not carry out a statement in time.

    Without an SQLSTATE, and so taken for a database that is away: what was to be written is kept and tried again.
    """


class BoundedConnection(QueueConnection):
    """Gives up a statement after ``seconds`` (by default, a part of the deadline); each that ends is progress.

    The bound holds for the transaction and not for the session, which behind a pooler belongs to others as well. It costs three
    round trips a statement. Past the bound a statement raises :class:`NoAnswerError`.
    """

    def __init__(
        self, progress: Progress | None = None, *, seconds: float | None = None
    ) -> None:
        super().__init__(DEFAULT_DB_ALIAS)
        self._progress = progress
        self._seconds = seconds

    def _execute(
        self, query: str, parameters: Sequence[Any] | dict[str, Any]
    ) -> list[Any]:
        seconds = longest_statement() if self._seconds is None else self._seconds
        guard: threading.Timer | None = None
        try:
            raw = self.raw()
            # A commit has no statement_timeout, and where a standby has to confirm it, it may wait for that for ever.
            guard = threading.Timer(2 * seconds, _cancel, [raw, seconds])
            guard.daemon = True
            guard.start()
            with raw.transaction():
                self._execute_bound(seconds)
                return super()._execute(query, parameters)
        except psycopg.errors.QueryCanceled as error:
            raise NoAnswerError(
                f"no answer within {seconds:g} s, as behind a lock on the table: {error}"
            ) from error
        finally:
            if guard is not None:
                guard.cancel()
            if self._progress is not None:
                self._progress.moved()

    def _execute_bound(self, seconds: float) -> None:
        super()._execute(_BOUND, [f"{max(1, round(seconds * 1000))}ms"] * 2)


def _cancel(connection: psycopg.Connection[Any], seconds: float) -> None:
    """Without it where libpq cannot do so in the background: it would stop the whole process behind a pooler that hangs."""
    if psycopg.capabilities.has_cancel_safe():
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=seconds)
