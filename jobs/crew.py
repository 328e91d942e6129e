"""The threads of a pool: those that work, and those that were written off since their handlers hang."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress

from jobs import concurrency, hangs
from jobs.connection import Executes
from jobs.leases import LeasedJob
from jobs.outcomes import NOT_BEGUN, Outcome
from jobs.thread import WorkerThread

FEWEST_LOST = 2
"""One thread that hangs may be one bad job. With two of them, also a pool of one has hung again after its replacement."""


class Crew:
    """Keeps ``size`` threads at work: one that hangs is written off, and another takes its place.

    A thread cannot be ended from outside, so those that hang are counted. Of one that comes back nothing is awaited: it
    ends itself. Changed by one thread only; others may look at any time.
    """

    def __init__(self, make: Callable[[int], WorkerThread], size: int) -> None:
        self._make = make
        self._numbers = itertools.count(1)
        self._size = size
        concurrency.announce(size)
        self._written_off: list[WorkerThread] = []
        self._executed = 0
        self.working = [make(next(self._numbers)) for _ in range(size)]

    def write_off_hanging(self, *, replace: bool) -> list[tuple[LeasedJob, Outcome]]:
        """Take their jobs from the threads that hang; return what becomes of these jobs, and of what waited behind them.

        See :func:`jobs.hangs.fail`.
        """
        decided: list[tuple[LeasedJob, Outcome]] = []
        for thread in self.working.copy():
            failed = hangs.fail(thread)
            if failed is not None:
                decided.append(failed)
                decided.extend((job, NOT_BEGUN) for job in thread.pop_all_waiting())
                self._write_off(thread, replace=replace)
        return decided

    def _write_off(self, lost: WorkerThread, *, replace: bool) -> None:
        self._executed += lost.executed() + 1
        self._written_off.append(lost)
        working = [thread for thread in self.working if thread is not lost]
        if replace:
            fresh = self._make(next(self._numbers))
            # Where the system has no thread left, fewer go on, and too many are lost.
            with suppress(RuntimeError):
                fresh.start()
                working.append(fresh)
        # A new list, and only now: whoever reads the old one finds the thread there, or else among those written off.
        self.working = working

    def take_executing(self) -> list[LeasedJob]:
        """Take from the threads the jobs of the executions under way: the handlers are told, and what they end with is dropped."""
        taken = []
        for thread in self.working:
            execution = thread.execution
            if execution is not None and thread.take_from(execution):
                execution.context.notify_lease_lost()
                taken.append(execution.job)
        return taken

    def has_lost_too_many(self) -> bool:
        """Whether as many threads hang as were to work, at least ``FEWEST_LOST``, or one could not be replaced.

        Each keeps its memory, its connections and whatever it has locked: the process had better be replaced.
        """
        lost = self.hanging()
        return lost >= max(FEWEST_LOST, self._size) or len(self.working) < self._size

    def hanging(self) -> int:
        """How many written-off threads have not come back."""
        return sum(thread.is_alive() for thread in self._written_off)

    def is_alive(self) -> bool:
        """Whether any thread has not ended."""
        return self.hanging() > 0 or any(thread.is_alive() for thread in self.working)

    def executed(self) -> int:
        """About how many jobs were executed; one counts when it has ended or is given up."""
        return self._executed + sum(thread.executed() for thread in self.working)

    def held(self) -> list[LeasedJob]:
        """Everything that the threads hold."""
        held = [job for thread in self.working for job in thread.held()]
        return held + [job for thread in self._written_off for job in thread.held()]

    def has_unwritten(self) -> bool:
        """Whether an outcome is not in the table yet."""
        return any(thread.done for thread in [*self.working, *self._written_off])

    def flush_written_off(self, connection: Executes) -> None:
        """Write what the written-off threads had done, and forget those of which nothing is left.

        Raises what ``jobs.connection.UNAVAILABLE`` holds; what was not written then is still held.
        """
        for thread in self._written_off.copy():
            thread.done.flush(connection, wait=False)
            if not (thread.is_alive() or thread.done):
                self._written_off.remove(thread)
                thread.forget()
