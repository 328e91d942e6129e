"""Single statements of a handler over its worker thread's own connection, which is idle while the handler runs.

What a handler uses of Django's connections is made as new after its job, at the cost of a round trip. A handler that
does nothing but one short statement now and then, each a transaction of its own, spares that here. Nothing may be left
behind in the session, so this is for code that is as careful as the queue's: no SET, no transaction, no cursor.
"""

from __future__ import annotations

import select
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import connection as djangos

from jobs.connection import QueueConnection
from jobs.riding import Write

_of_thread = threading.local()


def lend(connection: QueueConnection) -> None:
    """Called by a worker's thread as it begins: handlers may use its connection."""
    _of_thread.connection = connection


def execute(query: str, parameters: dict[str, Any] | Sequence[Any]) -> list[Any]:
    """Run one statement and return its rows ([] for none).

    In a worker's thread it commits at once, over the thread's connection, and raises psycopg's errors; elsewhere, and in
    an open transaction, it goes over Django's and raises Django's. A connection that the server has ended meanwhile is
    replaced before.
    """
    own: QueueConnection | None = getattr(_of_thread, "connection", None)
    if own is None or djangos.in_atomic_block:
        return _on_djangos(query, parameters)
    if own.is_open and _has_ended(own.raw()):
        own.close()
    return own.execute(query, parameters)


def ride_along(write: Write, row: Mapping[str, Any]) -> None:
    """Have this written with the worker thread's next statement, at the latest with its job's end; elsewhere at once.

    For what follows from the handler's success: where its job's completion is lost with a crash, so is this.
    """
    own: QueueConnection | None = getattr(_of_thread, "connection", None)
    if own is None or djangos.in_atomic_block:
        _on_djangos(write.sql, write.parameters([row]))
    else:
        own.ride_along(write, row)


def write_waiting() -> None:
    """Write now what waits in this thread."""
    own: QueueConnection | None = getattr(_of_thread, "connection", None)
    if own is not None:
        own.write_waiting()


def _on_djangos(query: str, parameters: dict[str, Any] | Sequence[Any]) -> list[Any]:
    """Without Django's own cursor, which costs as much again as a short statement, and its health check, one more."""
    if not djangos.in_atomic_block and _has_ended(djangos.connection):
        djangos.close()
    with djangos.wrap_database_errors:
        djangos.ensure_connection()
        with psycopg.Cursor(djangos.connection) as cursor:
            cursor.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []


def _has_ended(raw: Any) -> bool:
    if raw is None:
        return False
    if raw.closed:
        return True
    # An idle connection has something to read when the server has hung up, and hardly ever otherwise.
    look = select.poll()
    look.register(raw.fileno(), select.POLLIN)
    return bool(look.poll(0))
