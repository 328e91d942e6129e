"""Threads that do one thing at a time, each on connections of its own: several workers and operators in one test.

What an actor does may wait for a lock that another holds; the test goes on meanwhile, and ends the other's
transaction when it is time to.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

from django.db import connection, transaction

from jobs.connection import QueueConnection
from jobs.testing import PATIENCE, wait_until

_BLOCKERS = """
SELECT unnest(pg_blocking_pids(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND wait_event IN ('transactionid', 'tuple', 'spectoken')
"""
# Others are waited for as well, but never for long: the one that NOTIFY takes, for instance.


class Actor:
    """One thread. ``queue`` is its connection as a worker has it; Django's is the thread's own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue = QueueConnection()
        self.in_transaction = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    def start(self, action: Callable[[], Any]) -> Future[Any]:
        return self._thread.submit(action)

    def do(self, action: Callable[[], Any]) -> Any:
        return self.start(action).result(PATIENCE)

    def begin(self) -> int:
        """Open a transaction that stays open; return the server's process."""
        pid: int = self.do(self._begin)
        self.in_transaction = True
        return pid

    def _begin(self) -> int:
        self.queue.execute("BEGIN", [])
        return self.queue.raw().info.backend_pid

    def end(self, *, commit: bool) -> None:
        self.start_end(commit=commit).result(PATIENCE)

    def start_end(self, *, commit: bool) -> Future[None]:
        self.in_transaction = False
        return self.start(lambda: self._end(commit))

    def _end(self, commit: bool) -> None:
        self.queue.execute("COMMIT" if commit else "ROLLBACK", [])

    def crash(self) -> None:
        """Lose the connections, and with them what they had not committed."""
        if self.in_transaction:
            # Before they go, which the server may notice at any time.
            self.end(commit=False)
        self.do(self._lose_connections)

    def close(self) -> None:
        self.crash()
        self._thread.shutdown()

    def _lose_connections(self) -> None:
        self.queue.close()
        connection.close()


class Person(Actor):
    """An actor whose transactions are Django's."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._atomic: transaction.Atomic | None = None

    def _begin(self) -> int:
        self._atomic = transaction.atomic()
        self._atomic.__enter__()
        pid: int = connection.connection.info.backend_pid
        return pid

    def _end(self, commit: bool) -> None:
        atomic, self._atomic = self._atomic, None
        assert atomic is not None
        if not commit:
            transaction.set_rollback(True)
        atomic.__exit__(None, None, None)


class Actors:
    """All of one test, and a connection that looks on."""

    def __init__(self, *, workers: int) -> None:
        self.observer = QueueConnection()
        self.observer.execute("SET lock_timeout = '20s'", [])
        self.workers = [Actor(f"worker-{number}") for number in range(1, workers + 1)]
        self.heartbeat = Actor("heartbeat")
        self.producer = Person("producer")
        self.operator = Person("operator")
        self.housekeeper = Person("housekeeper")

    def __enter__(self) -> Actors:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for actor in self.all():
            actor.close()
        self.observer.close()

    def all(self) -> list[Actor]:
        return [
            *self.workers,
            self.heartbeat,
            self.producer,
            self.operator,
            self.housekeeper,
        ]

    def roll_back(self) -> None:
        """End all transactions that are open, and with them whatever waits for one."""
        # All are told before one is waited for: what one still does may wait for another's transaction.
        ended = [
            actor.start_end(commit=False)
            for actor in self.all()
            if actor.in_transaction
        ]
        for call in ended:
            call.result(PATIENCE)

    def blocker(self, call: Future[Any]) -> int | None:
        """The server's process for whose transaction the call waits; None once the call has ended."""
        blockers: list[int] = []

        def known() -> bool:
            blockers[:] = self._blockers()
            return call.done() or bool(blockers)

        wait_until(known, what="the call ends or waits for a lock")
        return None if call.done() else blockers[0]

    def _blockers(self) -> list[int]:
        return [pid for (pid,) in self.observer.execute(_BLOCKERS, [])]
