"""Outcomes that wait to be written: added to by one thread, written by whichever comes to it."""

from __future__ import annotations

import threading
import time

from jobs.connection import Executes
from jobs.finisher import write
from jobs.leases import LeasedJob
from jobs.outcomes import Outcome


class Outbox:
    """What was decided about leased jobs and is not in the table yet.

    Adding and looking never wait for a write, which may wait for the database: the heartbeat must
    go on naming these jobs meanwhile.
    """

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._entries: list[tuple[LeasedJob, Outcome]] = []
        self._since = 0.0

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, job: LeasedJob, outcome: Outcome) -> None:
        """Have the outcome written with the next flush."""
        with self._lock:
            if not self._entries:
                self._since = time.monotonic()
            self._entries.append((job, outcome))

    def jobs(self) -> list[LeasedJob]:
        """The jobs whose outcomes wait."""
        with self._lock:
            return [job for job, _ in self._entries]

    def age(self) -> float:
        """Seconds that the first outcome has waited; 0 where none does."""
        with self._lock:
            return time.monotonic() - self._since if self._entries else 0.0

    def flush(self, connection: Executes, *, wait: bool = True) -> None:
        """Write what waits; without ``wait``, not while another thread is writing it.

        Raises what ``jobs.connection.UNAVAILABLE`` holds; what was not written then waits on.
        """
        if not self._writing.acquire(blocking=wait):
            return
        try:
            with self._lock:
                taken = list(self._entries)
            left = list(taken)
            try:
                write(connection, left, worker=self._worker)
            finally:
                written = {id(entry) for entry in taken} - {id(entry) for entry in left}
                with self._lock:
                    self._entries = [e for e in self._entries if id(e) not in written]
        finally:
            self._writing.release()
