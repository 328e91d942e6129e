"""Moving a few references of a clone as git does, without a process of git, which costs a third of a small fetch.

Each is locked, logged and replaced in one step, by the rules that git's own processes keep towards each other. Whatever is not plain is left to git.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

MOST = 20
"""References beyond which git is quicker."""

_NOTHING = b"0" * 40
_WHO = b"acw <acw@localhost>"


def move(
    repository: Path, moved: Mapping[bytes, bytes], had: Mapping[bytes, bytes]
) -> bool:
    """Set the references to ``moved``, objects by full names; False where git has to do it, in whole or in part.

    ``had`` is what they were; what is nowhere in it is new, and has no room to be made for it. Nobody else's lock is waited for.
    """
    if len(moved) > MOST:
        return False
    top = os.fsencode(repository)
    try:
        for name, at in moved.items():
            _move(top, name, at, had.get(name, _NOTHING))
    except OSError:
        return False
    return True


def _move(top: bytes, name: bytes, at: bytes, was: bytes) -> None:
    path = _place(top, name)
    lock = path + b".lock"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(lock, flags, 0o666)
    try:
        try:
            # Not synced: what a loss of power takes of it, the next fetch makes anew.
            os.write(descriptor, at + b"\n")
        finally:
            os.close(descriptor)
        _log(top, name, at, was)
        os.rename(lock, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(lock)
        raise


def _log(top: bytes, name: bytes, at: bytes, was: bytes) -> None:
    """A line in its log, by which agents' git finds where a branch was before it was forced."""
    line = b"%b %b %b %d +0000\tfetch\n" % (was, at, _WHO, time.time())
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(_place(top, b"logs/" + name), flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("the log is no file")
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _place(top: bytes, name: bytes) -> bytes:
    """The file of this name, with the directories that it lies in; OSError where one of those leads elsewhere."""
    directory = top
    *parts, _ = name.split(b"/")
    for part in parts:
        directory += b"/" + part
        try:
            if not stat.S_ISDIR(os.lstat(directory).st_mode):
                raise OSError("not a directory")
        except FileNotFoundError:
            os.mkdir(directory)
    return top + b"/" + name
