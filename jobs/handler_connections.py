"""The Django connections that handlers use in a worker's thread, made as new after each job that used them.

Nothing that one handler leaves behind reaches the next: no open transaction, setting, role, cursor, temporary table,
LISTEN, advisory lock or prepared statement. PostgreSQL resets all that in one round trip, a thirtieth of
what a new connection takes; a connection that is not sure to come out of it as new is closed. Those that a handler did
not use cost nothing.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import Any

import psycopg
from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from jobs.connection import is_direct
from jobs.exceptions import TransactionMisused

log = logging.getLogger(__name__)

_QUICKEST_OPENING = 0.0002
"""Seconds: nothing that is done in less has opened a connection."""

_OPEN = (TransactionStatus.ACTIVE, TransactionStatus.INTRANS, TransactionStatus.INERROR)


class Watch:
    """Stands in for the lock of a psycopg connection, which each exchange with the server takes, and notes that."""

    __slots__ = ("_lock", "direct", "used")

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self.used = False
        self.direct: bool | None = None
        """Whether no pooler lies between; None where nobody has looked yet."""

    def __enter__(self) -> Any:
        self.used = True
        return self._lock.__enter__()

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        self.used = True
        return getattr(self._lock, name)


def watch(connection: psycopg.Connection[Any]) -> Watch:
    """The watch over this connection, from now on."""
    lock: Any = connection.lock
    if type(lock) is not Watch:
        lock = connection.lock = Watch(lock)  # type: ignore[assignment]
    found: Watch = lock
    return found


class HandlerConnections:
    """This thread's connections, to be used by this thread alone and for one batch.

    Finding them costs more than a small job, so they are found once, and looked for again only where a handler
    took so long that it may have replaced one. A transaction that is open from
    the start is the caller's, as in tests: it stays open, and its session as it is.
    """

    def __init__(self) -> None:
        self._all = [_Connection(connections[alias]) for alias in connections]
        for each in self._all:
            if not each.callers:
                each.wrapper.close_if_unusable_or_obsolete()
        self._tidied = time.monotonic()
        self.tidy()

    def tidy(self, *, away: bool = False) -> TransactionMisused | None:
        """Give the next handler sound connections; return what was wrong where a transaction had been left open.

        With ``away`` all are closed, as after an error that said that the database is: the next
        handler meets a new connection, to the server that answers then. Never raises.
        """
        now = time.monotonic()
        if now - self._tidied > _QUICKEST_OPENING:
            misused = self._replaced()
        else:
            misused = None
        self._tidied = now
        for position, each in enumerate(self._all):
            wrapper = each.wrapper
            raw = wrapper.connection
            if raw is None and not wrapper.in_atomic_block:
                continue
            if not away and raw is not None and not _used(raw):
                continue
            misused = each.tidy(away=away) or misused
            if each.unusable:
                self._all[position] = each.renewed()
        return misused

    def _replaced(self) -> TransactionMisused | None:
        """Take in the connections that handlers have put in the place of others; end those others."""
        misused = None
        for position, each in enumerate(self._all):
            current = connections[each.wrapper.alias]
            if current is not each.wrapper and not each.callers:
                misused = each.tidy(away=True) or misused
                self._all[position] = _Connection(current, callers=False)
        return misused


class _Connection:
    """One alias of this thread's."""

    __slots__ = ("_depth", "_execute_wrappers", "callers", "unusable", "wrapper")

    def __init__(
        self, wrapper: BaseDatabaseWrapper, *, callers: bool | None = None
    ) -> None:
        self.wrapper = wrapper
        self.callers = wrapper.in_atomic_block if callers is None else callers
        self.unusable = False
        self._depth = len(wrapper.atomic_blocks)
        self._execute_wrappers = list(wrapper.execute_wrappers)

    def tidy(self, *, away: bool) -> TransactionMisused | None:
        """After use. ``unusable`` then says that Django can open no new connection in this object."""
        wrapper = self.wrapper
        wrapper.queries_log.clear()
        wrapper.execute_wrappers[:] = self._execute_wrappers
        if self.callers:
            return self._left_in_callers()
        left_open = wrapper.in_atomic_block or _in_transaction(wrapper.connection)
        if left_open or away or not _try_as_new(wrapper):
            with suppress(Error, psycopg.Error):
                wrapper.close()
        # Django keeps a connection that was closed inside atomic() unusable.
        self.unusable = wrapper.in_atomic_block
        return _misused(wrapper) if left_open else None

    def renewed(self) -> _Connection:
        """The same alias, with nothing of this one."""
        alias = self.wrapper.alias
        if connections[alias] is self.wrapper:
            del connections[alias]
        return _Connection(connections[alias], callers=False)

    def _left_in_callers(self) -> TransactionMisused | None:
        """Roll back to where the caller was."""
        blocks = self.wrapper.atomic_blocks
        if len(blocks) <= self._depth:
            return None
        while len(blocks) > self._depth:
            self.wrapper.needs_rollback = True
            with suppress(Error):
                blocks[-1].__exit__(None, None, None)
        return _misused(self.wrapper)


def _used(raw: Any) -> bool:
    lock = getattr(raw, "lock", None)
    return type(lock) is not Watch or lock.used


def _in_transaction(raw: Any) -> bool:
    return isinstance(raw, psycopg.Connection) and raw.info.transaction_status in _OPEN


def _try_as_new(wrapper: BaseDatabaseWrapper) -> bool:
    try:
        return _as_new(wrapper)
    except (
        Exception
    ):  # of the database, or of what an app connects to connection_created
        log.debug("a connection could not be made as new", exc_info=True)
        return False


def _as_new(wrapper: BaseDatabaseWrapper) -> bool:
    """Make the session as it was when it had just been opened; false where it is to be closed instead."""
    raw = wrapper.connection
    # Also an error that the handler has dealt with may have come from a server that is primary no longer.
    if wrapper.errors_occurred:
        return False
    if isinstance(raw, psycopg.Connection) and (
        raw.closed or _is_altered(wrapper, raw)
    ):
        return False
    wrapper.close_if_unusable_or_obsolete()
    if not isinstance(raw, psycopg.Connection):
        return True
    if wrapper.connection is None:
        return True
    state = watch(raw)
    if state.direct is None:
        state.direct = is_direct(raw)
    if not state.direct:
        # Which of the pooler's sessions a statement would reach is not known; it resets them itself, if at all, when its
        # client goes.
        return False
    raw.execute("DISCARD ALL")
    wrapper.init_connection_state()
    connection_created.send(sender=type(wrapper), connection=wrapper)
    wrapper.health_check_done = False  # type: ignore[attr-defined] # missing in the stubs
    state.used = False
    return True


def _is_altered(wrapper: BaseDatabaseWrapper, raw: psycopg.Connection[Any]) -> bool:
    """Whether the driver's object is not as Django makes it: no server could reset that."""
    level = (
        wrapper.isolation_level  # type: ignore[attr-defined] # PostgreSQL's has it
        if "isolation_level" in wrapper.settings_dict["OPTIONS"]
        else None
    )
    return (
        (raw.isolation_level, raw.read_only, raw.deferrable) != (level, None, None)
        or raw.autocommit != wrapper.settings_dict["AUTOCOMMIT"]
        or raw.row_factory is not tuple_row
        or raw.pgconn.pipeline_status != PipelineStatus.OFF
    )


def _misused(wrapper: BaseDatabaseWrapper) -> TransactionMisused:
    return TransactionMisused(
        f"a transaction was left open on the connection {wrapper.alias!r}, and what was written there is rolled back: "
        "leave transaction.atomic(), or commit, before returning"
    )
