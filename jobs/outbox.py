"""Outcomes that wait to be written: added to by one thread, written by whichever comes to it."""

from __future__ import annotations

import threading
import time

from jobs.claims import Claim
from jobs.connection import Executes
from jobs.finisher import write
from jobs.leases import LeasedJob
from jobs.outcomes import Outcome


class Outbox:
    """What was decided about leased jobs and is not in the table yet.

    Adding and looking take no lock, and so never wait for a write, which may wait for the database: the
    heartbeat must go on naming these jobs meanwhile. Each change of the list is one operation of
    the interpreter's, so that whoever looks sees the list before it or after it.
    """

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._writing = threading.Lock()
        self._entries: list[tuple[LeasedJob, Outcome]] = []
        self._since = 0.0
        self.written = 0
        """Outcomes that have been dealt with."""

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, job: LeasedJob, outcome: Outcome) -> None:
        """Have the outcome written with the next flush."""
        if not self._entries:
            self._since = time.monotonic()
        self._entries.append((job, outcome))

    def jobs(self) -> list[LeasedJob]:
        """The jobs whose outcomes wait."""
        return [job for job, _ in self._entries.copy()]

    def age(self) -> float:
        """Seconds that the first outcome has waited; 0 where none does."""
        return time.monotonic() - self._since if self._entries else 0.0

    def flush(
        self, connection: Executes, *, wait: bool = True, wanted: Claim | None = None
    ) -> list[LeasedJob]:
        """Write what waits and, with ``wanted``, claim the next batch, which is returned.

        Without ``wait``, nothing is done while another thread is writing. Raises what
        ``jobs.connection.UNAVAILABLE`` holds; what was not written then waits on.
        """
        if not self._writing.acquire(blocking=wait):
            return []
        try:
            taken = self._entries.copy()
            left = taken.copy()
            try:
                return write(connection, left, worker=self._worker, wanted=wanted)
            finally:
                self._entries[: len(taken)] = left
                self.written += len(taken) - len(left)
        finally:
            self._writing.release()
