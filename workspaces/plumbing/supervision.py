"""Watching one child process: drains its pipes within bounds, and ends its whole group in time.

The child must lead a process group of its own. Knows nothing of git.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

STDOUT_MOST = 8 * 1024 * 1024
STDERR_HEAD = STDERR_TAIL = 32 * 1024
"""Bytes that are kept; of stderr the first and the last, since errors stand at both ends."""

TERM_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL: a git that is only killed leaves locks behind."""

_CHUNK = 64 * 1024
_LOOK_EVERY = 0.1
_FIRST_PAUSE = 0.0005


class Ending(Enum):
    """Why the watching ended."""

    EXITED = auto()
    TIMEOUT = auto()
    STOPPED = auto()
    OVERFLOW = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Captured:
    """How it ended, and what was kept of what it wrote."""

    ending: Ending
    stdout: bytes
    stderr: bytes


def supervise(
    *,
    group: int,
    stdout: int,
    stderr: int,
    exited: Callable[[], bool],
    timeout: float,
    stop: Callable[[], bool] | None = None,
    most: int = STDOUT_MOST,
    heard: Callable[[bytes], None] | None = None,
    begin: Callable[[], None] | None = None,
) -> Captured:
    """Watch the leader of process group ``group`` until it has exited, or must be ended.

    ``stdout`` and ``stderr`` are the reading ends of its pipes. ``exited`` says whether it has
    ended, without reaping it: until it is reaped no other process can get its number. It is ended
    after ``timeout`` seconds, when ``stop`` says so, and when it writes more than ``most`` bytes.
    ``heard`` is given what comes on stderr as it comes, all of it. ``begin`` is called first.
    On return, and on any exception, every process of the group has been killed.
    """
    watch = _Watch(
        group=group,
        stdout=stdout,
        stderr=stderr,
        exited=exited,
        most=most,
        heard=heard,
    )
    try:
        try:
            if begin is not None:
                begin()
            ending = watch.until_exit(time.monotonic() + timeout, stop)
        except BaseException:
            watch.terminate()
            raise
        if ending is not Ending.EXITED:
            watch.terminate()
    finally:
        # Also what an exited leader has left behind, such as ssh or a detached gc.
        _signal_group(group, signal.SIGKILL)
        watch.close()
    return Captured(ending=ending, stdout=watch.stdout, stderr=watch.stderr)


class _Watch:
    def __init__(
        self,
        *,
        group: int,
        stdout: int,
        stderr: int,
        exited: Callable[[], bool],
        most: int,
        heard: Callable[[bytes], None] | None,
    ) -> None:
        self._group = group
        self._heard = heard
        self._exited = exited
        self._most = most
        self._out = bytearray()
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self._overflow = False
        # For two descriptors it is quicker than one that the kernel has to make first.
        self._selector = selectors.PollSelector()
        for descriptor, keep in (
            (stdout, self._keep_stdout),
            (stderr, self._keep_stderr),
        ):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, keep)

    @property
    def stdout(self) -> bytes:
        return bytes(self._out)

    @property
    def stderr(self) -> bytes:
        left_out = (
            f"\n[{self._dropped} bytes left out]\n".encode() if self._dropped else b""
        )
        return bytes(self._head + left_out + self._tail)

    def until_exit(self, deadline: float, stop: Callable[[], bool] | None) -> Ending:
        pause = _FIRST_PAUSE
        while not self._exited():
            left = deadline - time.monotonic()
            if left <= 0:
                return Ending.TIMEOUT
            if self._overflow:
                return Ending.OVERFLOW
            if stop is not None and stop():
                return Ending.STOPPED
            if self._selector.get_map():
                self._read(min(left, _LOOK_EVERY))
            else:
                # Both pipes are closed: most often it exits within a millisecond.
                time.sleep(min(left, pause))
                pause = min(pause * 2, _LOOK_EVERY)
        # Reads what is in the pipes, and not until their end: a process that left the group may
        # keep them open.
        while self._selector.get_map() and self._read(0):
            pass
        return Ending.OVERFLOW if self._overflow else Ending.EXITED

    def terminate(self) -> None:
        """Ask the group to end, and go on draining: who is blocked on a full pipe cannot."""
        _signal_group(self._group, signal.SIGTERM)
        self._heard = None  # it may be what failed
        deadline = time.monotonic() + TERM_GRACE
        while not self._exited() and time.monotonic() < deadline:
            if self._selector.get_map():
                self._read(_LOOK_EVERY / 10)
            else:
                time.sleep(_LOOK_EVERY / 10)

    def close(self) -> None:
        self._selector.close()

    def _read(self, wait: float) -> bool:
        """Take what the pipes have, waiting for it at most so many seconds; False: nothing there."""
        ready = self._selector.select(wait)
        for key, _ in ready:
            with contextlib.suppress(BlockingIOError):
                chunk = os.read(key.fd, _CHUNK)
                if chunk:
                    key.data(chunk)
                else:
                    self._selector.unregister(key.fd)
        return bool(ready)

    def _keep_stdout(self, chunk: bytes) -> None:
        room = self._most - len(self._out)
        self._out += chunk[:room]
        self._overflow = self._overflow or len(chunk) > room

    def _keep_stderr(self, chunk: bytes) -> None:
        if self._heard is not None:
            self._heard(chunk)
        room = STDERR_HEAD - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        excess = len(self._tail) - STDERR_TAIL
        if excess > 0:
            self._dropped += excess
            del self._tail[:excess]


def _signal_group(group: int, number: signal.Signals) -> None:
    # PermissionError is what macOS says of a group that has only an unreaped leader.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
