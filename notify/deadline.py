"""One wall-clock deadline over everything that a socket does.

A socket's own timeout bounds each read, so that a peer that sends a byte now and then holds it for
ever. Here a timer shuts the socket down instead, which wakes whoever waits on it, TLS or not.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType


class Deadline:
    """Counts down from its making. As a context manager it leaves no timer and no descriptor behind."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer: threading.Timer | None = None
        self._cut = False

    def __enter__(self) -> Deadline:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop_timer()
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    @property
    def left(self) -> float:
        """Seconds until the deadline, not below zero."""
        return max(self._ends - time.monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether the time is up or the socket has been shut down."""
        return self._cut or self.left <= 0

    def watch(self, watched: socket.socket) -> None:
        """Shut this socket down at the deadline."""
        # A duplicate: TLS takes the descriptor out of the object that was dialled.
        self._socket = watched.dup()
        self._start_timer(self.left)

    def disarm(self) -> bool:
        """Take the deadline off; return whether it had cut the socket off, and with it what was read."""
        self._stop_timer()
        with self._lock:
            return self._cut

    def shorten(self, seconds: float) -> None:
        """Watch on, for ``seconds`` more or until the deadline, whichever comes first."""
        self._start_timer(min(seconds, self.left))

    def _start_timer(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._cut_off)
        self._timer.daemon = True
        self._timer.start()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut_off(self) -> None:
        with self._lock:
            # The descriptor must still be this socket's when it is shut down.
            if self._socket is not None:
                self._cut = True
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
