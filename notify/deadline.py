"""One wall-clock deadline over everything that a socket does.

A socket's own timeout bounds each call, so that a peer that sends a byte now and then holds it for ever. Here
each call is given what is left of the whole, and none is begun when nothing is. A peer that sends all the time, as fast
as it is read, would keep a processor busy until then; so what is read is bounded, too.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST_READ = 256 * 1024
"""Bytes of one answer, far more than any head has."""


class Deadline:
    """Counts down from its making."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until the deadline, not below zero."""
        return max(self._ends - time.monotonic(), 0.0)

    @property
    def passed(self) -> bool:
        """Whether the time is up."""
        return self.left <= 0

    def shorten(self, seconds: float) -> None:
        """End in ``seconds`` or at the deadline, whichever comes first."""
        self._ends = min(self._ends, time.monotonic() + seconds)

    def bound(self, bounded: socket.socket) -> None:
        """Have the next call on this socket end by the deadline. Raises TimeoutError where that has passed."""
        left = self.left
        if left <= 0:
            raise TimeoutError("the time given is up")
        bounded.settimeout(left)


class AnswerTooLong(http.client.HTTPException):
    """What the peer sends does not end."""


class TimedSocket:
    """A connected socket, TLS or not, on which all calls together end by a deadline.

    Raises TimeoutError at the deadline, and AnswerTooLong after :data:`MOST_READ`; what was read before is then no whole
    answer.
    """

    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._socket = connected
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        """Send all of ``data``."""
        # Not the socket's own sendall: that of a TLS socket gives each part its timeout anew.
        rest = memoryview(data)
        while rest:
            self._deadline.bound(self._socket)
            rest = rest[self._socket.send(rest) :]

    def makefile(self, mode: str = "rb") -> io.BufferedReader:
        """What is received, as ``http.client`` wants it."""
        return io.BufferedReader(_Received(self._socket, self._deadline))


class _Received(io.RawIOBase):
    def __init__(self, connected: socket.socket, deadline: Deadline) -> None:
        self._socket = connected
        self._deadline = deadline
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._deadline.bound(self._socket)
        if self._read >= MOST_READ:
            raise AnswerTooLong
        count = self._socket.recv_into(buffer)
        self._read += count
        return count
