"""The Django connections that handlers use in a worker's thread, kept sound from one job to the next."""

from __future__ import annotations

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus


class HandlerConnections:
    """This thread's connections, to be used by this thread alone and for one batch.

    Finding them costs more than a small job, so they are found once. A transaction that is open from
    the start is the caller's, as in tests, and its connection is left alone.
    """

    def __init__(self) -> None:
        self._all = [connections[alias] for alias in connections]
        self._callers = {wrapper for wrapper in self._all if wrapper.in_atomic_block}
        self.tidy()

    def tidy(self) -> None:
        """Give the next handler sound connections: none stale, none with a transaction left open."""
        for position, wrapper in enumerate(self._all):
            if wrapper.connection is None and not wrapper.in_atomic_block:
                continue
            wrapper.queries_log.clear()
            if wrapper in self._callers:
                continue
            if wrapper.in_atomic_block:
                self._all[position] = _replaced(wrapper)
            elif _in_transaction(wrapper):
                wrapper.close()  # begun by a plain BEGIN, which Django does not know of
            else:
                wrapper.close_if_unusable_or_obsolete()


def _in_transaction(wrapper: BaseDatabaseWrapper) -> bool:
    status: TransactionStatus = wrapper.connection.info.transaction_status
    return status != TransactionStatus.IDLE


def _replaced(wrapper: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
    """Django keeps a connection that was closed inside atomic() unusable: the next use makes a new one."""
    wrapper.close()
    del connections[wrapper.alias]
    return connections[wrapper.alias]
