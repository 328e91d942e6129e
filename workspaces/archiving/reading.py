"""Reading a directory that somebody else can write to: nothing is followed, nothing is waited for, every change is noticed."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from workspaces.exceptions import GitStopped, NotArchivable
from workspaces.plumbing import presentable
from workspaces.repository import Stop

CHUNK = 1024 * 1024
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, one that was exchanged for a pipe would be waited for.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST_PATH = 4095


class Top:
    """An open directory; everything below it is named by its path from there, as bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _readable(b"."):
            self._descriptor = os.open(path, _DIRECTORY)

    def __enter__(self) -> Top:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    @contextlib.contextmanager
    def directory(self, path: bytes) -> Iterator[int]:
        """A descriptor of the directory ``path``; ``b""`` is the top.

        Raises :class:`~workspaces.exceptions.NotArchivable`, as everything here does, where it cannot be read or is something else by now.
        """
        if len(path) > _LONGEST_PATH:
            raise NotArchivable(
                f"{shown(path[-60:])} lies deeper than any path can name"
            )
        descriptor = os.dup(self._descriptor)
        try:
            for name in path.split(b"/") if path else ():
                if name in {b"", b".", b".."}:
                    raise NotArchivable(f"{shown(path)} is no path below the directory")
                with _readable(path):
                    below = os.open(name, _DIRECTORY, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    def names(self, path: bytes) -> list[tuple[bytes, os.stat_result]]:
        """What is in a directory, in the order of the bytes of their names."""
        with self.directory(path) as descriptor, _readable(path):
            names = sorted(map(os.fsencode, os.listdir(descriptor)))
            return [
                (name, os.stat(name, dir_fd=descriptor, follow_symlinks=False))
                for name in names
            ]

    @contextlib.contextmanager
    def file(self, path: bytes) -> Iterator[BinaryIO]:
        """The regular file ``path``, to read; on leaving, that it was not changed meanwhile is checked."""
        above, _, name = path.rpartition(b"/")
        with self.directory(above) as parent, _readable(path):
            descriptor = os.open(name, _FILE, dir_fd=parent)
        try:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise changed(path)
            with open(descriptor, "rb", buffering=0, closefd=False) as opened:
                with _readable(path):
                    yield opened
                if _version(os.fstat(descriptor)) != _version(before):
                    raise changed(path)
        finally:
            os.close(descriptor)

    def chunks(self, path: bytes, *, stop: Stop | None = None) -> Iterator[bytes]:
        """The bytes of a regular file."""
        with self.file(path) as opened:
            while chunk := opened.read(CHUNK):
                yield chunk
                if stop is not None and stop():
                    raise GitStopped("archive", "was ended because the caller stops")

    def read(self, path: bytes, *, most: int) -> bytes | None:
        """The bytes of a regular file; None where there is none, or it has more than ``most``."""
        try:
            with self.file(path) as opened:
                if os.fstat(opened.fileno()).st_size > most:
                    return None
                return b"".join(iter(lambda: opened.read(CHUNK), b""))
        except NotArchivable as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    def link(self, path: bytes) -> bytes:
        """Where the symbolic link ``path`` points to."""
        above, _, name = path.rpartition(b"/")
        with self.directory(above) as parent, _readable(path):
            return os.readlink(name, dir_fd=parent)


def shown(path: bytes) -> str:
    """The path as people can read it: its end where it is long."""
    return presentable.value(os.fsdecode(path[-200:]))


def changed(path: bytes) -> NotArchivable:
    """The error of what does not stand still."""
    return NotArchivable(
        f"{shown(path)} was changed while it was read; try again when nobody works there"
    )


def _version(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@contextlib.contextmanager
def _readable(path: bytes) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotArchivable(
            f"{shown(path)} cannot be read ({error.strerror}); make it readable for"
            " this service, or remove it"
        ) from error
