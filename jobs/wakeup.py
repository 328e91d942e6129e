"""Telling the workers that there is new work, or that a job of theirs is to be cancelled.

NOTIFY inside each enqueuing transaction would take a lock that makes all commits queue up (measured: 5,511
against 1,366 inserts/s with 32 clients). So it is sent after the commit, by a thread of its own over a connection of its own,
and what comes in within ``DEBOUNCE`` goes out as one. Only a job that is enqueued alone, with none before it in that time, takes
its notification along: it arrives half a millisecond sooner, and so few do that nobody queues up for the lock. A
notification that is lost costs one poll interval.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Iterable

from jobs import messages
from jobs.connection import QueueConnection
from jobs.events import LogEvent
from jobs.leases import LeaseKey

CHANNEL = "acw_jobs"
DEBOUNCE = 0.01
"""Seconds between two notifications, at least."""

BUSY_FROM = 3
"""Commits told of in one notification from which on this process is busy enqueuing."""

BUSY_SHARE = 10
"""It then pauses for so many times what the notification took: a server with a lot to do is asked less often."""

LONGEST_PAUSE = 0.1
"""Seconds."""

IDLE = 60.0
"""Seconds after which an unused connection is closed."""

# Its commit waits for no disk, since there is nothing to be lost: for this transaction alone, as a pooler may hand the
# connection to others.
_NOTIFY = "SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)"

log = logging.getLogger(__name__)


class Notifier:
    """Sends what :meth:`wake` is told, from a thread that lives while there is something to send."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._queues: set[str] = set()
        self._cancelled: set[LeaseKey] = set()
        self._commits = 0
        self._next_at = 0.0
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()

    def wake(self, queues: Iterable[str]) -> None:
        """Have the workers of these queues look for work. Returns at once."""
        with self._condition:
            told = bool(self._queues)
            self._queues.update(queues)
            self._commits += 1
            if not told:
                self._rouse()

    def cancel(self, leases: Iterable[LeaseKey]) -> None:
        """Have whoever runs a job under one of these leases told that it is to be cancelled. Returns at once."""
        with self._condition:
            self._cancelled.update(leases)
            self._rouse()

    def _rouse(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="acw-notify", daemon=True)
            thread.start()
            self._thread = thread
        # Heard by a thread that waits for work, and not by one that spaces its notifications.
        self._condition.notify()

    def take_along(self) -> bool:
        """Whether the next commit may bring its notification itself, as nobody has notified for ``DEBOUNCE``.

        Who is told that it may has to do so. A race makes two of one, which does no harm.
        """
        now = time.monotonic()
        if now < self._next_at or self._queues:
            return False
        self._next_at = now + DEBOUNCE
        return True

    def close(self, timeout: float) -> None:
        """Send what is left and end the thread, within ``timeout`` seconds; it starts again when needed."""
        with self._condition:
            thread = self._thread
            self._closing.set()
            self._condition.notify()
        if thread is not None:
            thread.join(timeout)
        self._closing.clear()

    def _run(self) -> None:
        with QueueConnection() as connection:
            while told := self._next():
                started = time.monotonic()
                try:
                    for message in told:
                        connection.execute(_NOTIFY, [CHANNEL, message])
                except (
                    Exception
                ):  # a wake-up is only a hint, and its thread must outlive every error
                    connection.close()
                    log.warning(
                        LogEvent.NOTIFY_FAILED,
                        extra={"messages": told},
                        exc_info=True,
                    )
                ended = time.monotonic()
                self._next_at = ended + self._pause(ended - started)

    def _next(self) -> list[str]:
        """What to send, when it is time to; nothing once nobody needed it for a while."""
        with self._condition:
            self._condition.wait_for(
                lambda: self._queues or self._cancelled or self._closing.is_set(), IDLE
            )
            if not self._queues and not self._cancelled:
                self._thread = None
                return []
        self._closing.wait(max(0.0, self._next_at - time.monotonic()))
        with self._condition:
            queues, self._queues = self._queues, set()
            cancelled, self._cancelled = self._cancelled, set()
        told = list(messages.of_cancelled(cancelled))
        return [*told, messages.of_queues(queues)] if queues else told

    def _pause(self, seconds: float) -> float:
        """How long to wait after a notification that took so long."""
        commits, self._commits = self._commits, 0
        if commits < BUSY_FROM:
            return DEBOUNCE
        return min(LONGEST_PAUSE, max(DEBOUNCE, BUSY_SHARE * seconds))


_notifier = Notifier()


def wake(queues: Iterable[str]) -> None:
    """Have the workers of these queues look for work; see :class:`Notifier`."""
    _notifier.wake(queues)


def cancel(leases: Iterable[LeaseKey]) -> None:
    """Have whoever runs a job under one of these leases told that it is to be cancelled; see :class:`Notifier`."""
    _notifier.cancel(leases)


def take_along() -> bool:
    """Whether the next commit may bring its notification itself; see :meth:`Notifier.take_along`."""
    return _notifier.take_along()


def close(timeout: float) -> None:
    """Send what is left and close the connection; see :meth:`Notifier.close`."""
    _notifier.close(timeout)


def _flush_at_exit() -> None:
    close(timeout=1.0)


def _forget_after_fork() -> None:
    """The thread and the connection stay with the parent."""
    global _notifier
    _notifier = Notifier()


atexit.register(_flush_at_exit)
os.register_at_fork(after_in_child=_forget_after_fork)
