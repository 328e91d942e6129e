"""Watches that the side threads of a worker process get on, and ends the process where one does not.

A thread that has died is noticed by the process itself. One that lives and hangs (a statement that never answers, a wait
without an end, a loop that has gone wrong) is noticed here: the count of its :class:`jobs.progress.Progress` stands still.
The main thread is watched here too, and it watches this thread in turn.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from jobs import stacks
from jobs.bounded import BoundedConnection
from jobs.connection import UNAVAILABLE
from jobs.events import LogEvent
from jobs.outcomes import storable
from jobs.part import Part
from jobs.presence import Presence
from jobs.progress import Progress, look_every

log = logging.getLogger(__name__)

LONGEST_RESPITE = 15.0
"""Seconds that a stalled thread has left to get on again, before the process ends; never more than a quarter of its deadline."""

WRITTEN_WITHIN = 5.0
"""Seconds within which the database must take what stands in ``job_workers``."""

STACK_LIMIT = 8_000

_MARK_EVERY = 10.0


def stack_of(progress: Progress) -> str:
    """Where the thread is now, in a form that can be logged; "" where it has left no sign yet, or has ended."""
    return storable(stacks.text_of(progress.thread_id), STACK_LIMIT)


class Watch:
    """For how long one thread has left no sign: ``idle`` counts the seconds in which this process ran meanwhile."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.idle = 0.0
        self.stalled = False
        self._count = progress.count

    def look(self, seconds: float) -> None:
        """Look ``seconds`` after the last time."""
        # Longer than that only where the whole process was suspended or starved.
        passed = min(seconds, 2 * look_every())
        moved = self.progress.count != self._count
        self.idle = 0.0 if moved else self.idle + passed
        self._count = self.progress.count

    @property
    def too_long(self) -> bool:
        """Whether the thread has no time left to get on again."""
        allowed = self.progress.allowed
        return self.idle > allowed + min(LONGEST_RESPITE, allowed / 4)

    def facts(self) -> dict[str, Any]:
        """For the log."""
        return {"part": self.progress.name, "seconds": round(self.idle, 1)}


class Watchdog(Part):
    """``watched`` are all threads that are to get on; ``end`` is called once, in this thread, when one has been stalled for too long."""

    def __init__(
        self,
        presence: Presence,
        *,
        worker: str,
        watched: Callable[[], Sequence[Progress]],
        end: Callable[[], None],
    ) -> None:
        super().__init__("acw-watchdog")
        self._presence = presence
        self._worker = worker
        self._watched = watched
        self._end = end
        self._ended = False
        self._watches: dict[Progress, Watch] = {}
        self._mark = _Mark(presence)

    def work(self) -> None:
        before = time.monotonic()
        while not self.stopping.is_set():
            self.wait(look_every())
            now = time.monotonic()
            self.look(now - before)
            before = now

    def look(self, seconds: float) -> None:
        """Look at every thread, ``seconds`` after the last time."""
        self._watches = {
            progress: self._watches.get(progress) or Watch(progress)
            for progress in self._watched()
        }
        watches = self._watches.values()
        for watch in watches:
            self._look_at(watch, seconds)
        self._presence.stalled = tuple(w.progress.name for w in watches if w.stalled)
        self._mark.keep()
        if not self._ended and any(watch.too_long for watch in watches):
            self._ended = True
            self._end()

    def _look_at(self, watch: Watch, seconds: float) -> None:
        was = watch.facts()
        watch.look(seconds)
        if watch.stalled and not watch.idle:
            watch.stalled = False
            log.warning(LogEvent.MODULE_RESUMED, extra={"worker": self._worker, **was})
        elif not watch.stalled and watch.idle > watch.progress.allowed:
            watch.stalled = True
            report(watch, worker=self._worker)


def report(watch: Watch, *, worker: str) -> None:
    """Tell the log where the thread hangs."""
    log.critical(
        LogEvent.MODULE_STALLED,
        extra={"worker": worker, **watch.facts(), "stack": stack_of(watch.progress)},
    )


class _Mark:
    """Has the row in ``job_workers`` say what is stalled, by threads that may hang: nobody waits for them."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._written: tuple[str, ...] = ()
        self._writer: threading.Thread | None = None
        self._begun_at = 0.0

    def keep(self) -> None:
        """Write what has changed, and now and then what has not: the row must stay young for ``/readyz`` to believe it."""
        age = time.monotonic() - self._begun_at
        under_way = self._writer is not None and self._writer.is_alive()
        if under_way and age < _MARK_EVERY:
            return
        stalled = self._presence.stalled
        if stalled != self._written or (stalled and age >= _MARK_EVERY):
            self._begun_at = time.monotonic()
            self._writer = threading.Thread(
                target=self._write, args=[stalled], name="acw-mark", daemon=True
            )
            self._writer.start()

    def _write(self, stalled: tuple[str, ...]) -> None:
        try:
            with BoundedConnection(seconds=WRITTEN_WITHIN) as connection:
                self._presence.announce(connection)
        except UNAVAILABLE:
            log.debug("what has stalled could not be written", exc_info=True)
        else:
            self._written = stalled
