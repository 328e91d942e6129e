"""The lock of one repository: across threads and processes of this host, gone when its holder is.

Whatever changes a clone or its worktrees does so under it; git's own locks make concurrent commands fail
instead of wait.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from workspaces.exceptions import CloneMissing, GitStopped, RepositoryBusy

_LOOK_EVERY = 0.05

_held: set[int] = set()
"""The descriptors of this process's locks. A forked child closes them: a lock lasts until its last copy is closed."""


@contextlib.contextmanager
def locked(
    path: Path, *, wait: dt.timedelta, stop: Callable[[], bool] | None = None
) -> Iterator[None]:
    """Hold the lock file ``path`` during the block, waiting for it up to ``wait``.

    Raises :class:`~workspaces.exceptions.RepositoryBusy` when it stays taken,
    :class:`~workspaces.exceptions.CloneMissing` where there is no such file, and
    :class:`~workspaces.exceptions.GitStopped` when ``stop`` says so meanwhile. Not reentrant.
    """
    descriptor = _open(path)
    try:
        _take(
            descriptor,
            path,
            deadline=time.monotonic() + wait.total_seconds(),
            stop=stop,
        )
        # Whoever had it may have removed the workspace, and another may have been made in its place.
        if not _is_still(descriptor, path):
            raise CloneMissing(f"{path.parent} was removed meanwhile")
        yield
    finally:
        close(descriptor)


def try_lock(path: Path) -> int | None:
    """Take the lock file, made where it is missing, and return the descriptor to :func:`close`; None where it is taken."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    _held.add(descriptor)
    return descriptor


def close(descriptor: int) -> None:
    """Let go of a lock."""
    _held.discard(descriptor)
    # A child that was begun at this moment may have a copy of the descriptor until it runs its program.
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _forget_in_child() -> None:
    while _held:
        # Not unlocked, which would be for the parent too.
        os.close(_held.pop())


os.register_at_fork(after_in_child=_forget_in_child)


def _open(path: Path) -> int:
    try:
        # Not inheritable, so that no child keeps the lock when this process is gone.
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError as error:
        raise CloneMissing(
            f"there is no clone at {path.parent}: {error.strerror}"
        ) from None
    _held.add(descriptor)
    return descriptor


def _take(
    descriptor: int, path: Path, *, deadline: float, stop: Callable[[], bool] | None
) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if stop is not None and stop():
                raise GitStopped(
                    "lock", "was not waited for because the caller stops"
                ) from None
            if time.monotonic() >= deadline:
                raise RepositoryBusy(
                    f"the repository at {path.parent} is being worked on; try again later"
                ) from None
            time.sleep(_LOOK_EVERY)
        else:
            return


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        named = path.lstat()
    except FileNotFoundError:
        return False
    mine = os.fstat(descriptor)
    return (mine.st_dev, mine.st_ino) == (named.st_dev, named.st_ino)
