"""Who uses a cluster, kept in file locks, which the system takes back from the dead.

Two files. The *users* lock is shared, held by each process that uses the cluster for as
long as it lives: who can make it exclusive is the last. The *starting* lock is
exclusive, held by whoever starts or stops the server, so that these never overlap.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_RETRY_SECONDS = 0.02


class UsersLock:
    """This process's share in the users of a cluster."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        # A fork shares the lock with its parent, and either could give up both shares:
        # the child lets go of the copy, and takes a share of its own when it needs one.
        os.register_at_fork(after_in_child=self._close)

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def hold(self) -> None:
        if self._descriptor is None:
            descriptor = _open(self._path)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            self._descriptor = descriptor

    def release(self, *, patience: float = 0) -> bool:
        """Give up the share; return whether it was the last. Call it while holding the
        starting lock, so that the answer is still true when it is acted upon.

        `patience` is how many seconds others who are ending may take.
        """
        if self._descriptor is None:
            return False
        deadline = time.monotonic() + patience
        try:
            while not _try_exclusive(self._descriptor):
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_RETRY_SECONDS)
            return True
        finally:
            self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock on the file; waits for whoever has it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _try_exclusive(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(path: Path) -> int:
    # Reading is enough for a lock, also on a file that another user has made.
    return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
