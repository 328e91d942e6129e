"""Signs of progress: what a thread leaves in memory each time that it gets on, for the watchdog to compare.

A count, and no clock: the watchdog measures for how long it has not changed, so that the time for which the whole process was
suspended is nobody's fault.
"""

from __future__ import annotations

import datetime as dt
import threading

from django.conf import settings

_TRIES_PER_DEADLINE = 4
_LOOKS_PER_DEADLINE = 10


def stall_after() -> float:
    """Seconds without a sign of progress after which a thread counts as stalled."""
    after: dt.timedelta = settings.JOBS_STALL_AFTER
    return after.total_seconds()


def look_every() -> float:
    """Seconds between two looks at all threads, and between two signs of one that waits; 1 at most."""
    return min(1.0, stall_after() / _LOOKS_PER_DEADLINE)


def longest_statement() -> float:
    """Seconds after which a side thread gives up one statement: several tries, each a sign, fit into the deadline."""
    return stall_after() / _TRIES_PER_DEADLINE


class Progress:
    """What one thread is getting on with.

    ``name`` is how it is called in the log and in ``job_workers``. ``allowed`` is how many seconds may pass between two signs;
    None stands for :func:`stall_after`.
    """

    __slots__ = ("_allowed", "count", "name", "thread_id")

    def __init__(self, name: str, allowed: float | None = None) -> None:
        self.name = name
        self.count = 0
        self.thread_id: int | None = None
        self._allowed = allowed

    @property
    def allowed(self) -> float:
        return stall_after() if self._allowed is None else self._allowed

    def moved(self) -> None:
        """Leave a sign; called by the thread itself."""
        self.thread_id = threading.get_ident()
        self.count += 1


class ObservedStop(threading.Event):
    """The stop event that a tick is given: whoever looks at it is getting on."""

    def __init__(self, stop: threading.Event, progress: Progress) -> None:
        super().__init__()
        self._stop = stop
        self._progress = progress

    def is_set(self) -> bool:
        self._progress.moved()
        return self._stop.is_set()

    def set(self) -> None:
        self._stop.set()

    def clear(self) -> None:
        self._stop.clear()

    def wait(self, timeout: float | None = None) -> bool:
        self._progress.moved()
        return self._stop.wait(timeout)
