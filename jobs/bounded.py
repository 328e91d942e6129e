"""The connection of a side thread: a statement that takes too long there is given up by the server.

So a lock that an operator holds (``ALTER TABLE``, ``LOCK TABLE``) keeps no thread waiting without a sign of life, and no
shutdown from its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS

from jobs.connection import QueueConnection
from jobs.progress import Progress, longest_statement

_BOUND = "SELECT set_config('statement_timeout', %s, true)"


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
        try:
            with self.raw().transaction():
                super()._execute(_BOUND, [f"{max(1, round(seconds * 1000))}ms"])
                return super()._execute(query, parameters)
        except psycopg.errors.QueryCanceled as error:
            raise NoAnswerError(
                f"no answer within {seconds:g} s, as behind a lock on the table: {error}"
            ) from error
        finally:
            if self._progress is not None:
                self._progress.moved()
