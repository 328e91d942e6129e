"""What is in a directory, entry by entry with the digest of its bytes: what an archive is checked against.

Not in it: times, owners, extended attributes, which names are links to one file, set-user-id bits. Sockets and devices are left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings

from workspaces.archiving import reading
from workspaces.archiving.reading import Top, shown
from workspaces.exceptions import ArchiveDamaged, ArchiveTooLarge, GitStopped
from workspaces.repository import Stop

ENTRIES_MOST = 500_000
"""Entries of one directory that are archived; the manifest of as many is some 90 MB."""

_NAMED_MOST = 3
# The unit of st_blocks, whatever the file system.
_BLOCK = 512
# Who restores may be another user than who set these bits on a file.
_FILE_MODE = 0o777
_DIRECTORY_MODE = 0o3777


class Kind(StrEnum):
    """What an entry is."""

    FILE = "file"
    LINK = "link"
    DIRECTORY = "directory"
    FIFO = "fifo"


@dataclass(frozen=True, slots=True)
class Entry:
    """One path, as bytes from the top (``b""``: the top itself).

    ``digest`` is the SHA-256 of a file's bytes or of where a link points to, ``blob`` the name that git gives to the same bytes; both are
    "" for what has none.
    """

    path: bytes
    kind: Kind
    mode: int
    size: int = 0
    digest: str = ""
    blob: str = ""

    @property
    def has_bytes(self) -> bool:
        return bool(self.blob)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The entries of a directory, in the order of their paths, and the paths that were left out."""

    entries: tuple[Entry, ...]
    left_out: tuple[bytes, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files and links."""
        return sum(entry.size for entry in self.entries)

    def as_json(self) -> bytes:
        """The entries; what was left out is no part of it."""
        rows = [
            [_text(e.path), e.kind, e.mode, e.size, e.digest, e.blob]
            for e in self.entries
        ]
        return json.dumps(rows, separators=(",", ":")).encode()

    @property
    def digest(self) -> str:
        """SHA-256 of :meth:`as_json`: equal for directories with the same entries only."""
        return hashlib.sha256(self.as_json()).hexdigest()


def from_json(text: bytes) -> Manifest:
    """Read what :meth:`Manifest.as_json` wrote; raises :class:`~workspaces.exceptions.ArchiveDamaged` for anything else."""
    try:
        entries = tuple(
            Entry(as_bytes(path), Kind(kind), mode & 0o7777, size, digest, blob)
            for path, kind, mode, size, digest, blob in json.loads(text)
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise ArchiveDamaged(
            f"the archive's manifest cannot be read: {error}"
        ) from None
    for entry in entries:
        names = set(entry.path.split(b"/")) if entry.path else set()
        if b"\0" in entry.path or not names.isdisjoint({b"", b".", b".."}):
            raise ArchiveDamaged("the archive's manifest has paths that lead elsewhere")
    return Manifest(entries)


def of(
    top: Top,
    *,
    leave_out: Collection[bytes] = (),
    but: Callable[[bytes], bool] = lambda path: False,
    stop: Stop | None = None,
) -> Manifest:
    """Read the whole directory, but ``leave_out`` with all below them, and but what ``but`` says is of no account.

    Raises :class:`~workspaces.exceptions.NotArchivable` where something cannot be read or changes meanwhile,
    ``ArchiveTooLarge`` beyond :data:`ENTRIES_MOST` or where files have more than ``ACW_ARCHIVE_MAX_SIZE`` of holes, and ``GitStopped``.
    """
    with top.directory(b"") as descriptor:
        mode = os.fstat(descriptor).st_mode
    entries = [Entry(b"", Kind.DIRECTORY, mode & _DIRECTORY_MODE)]
    left_out = []
    holes = 0
    waiting = [b""]
    while waiting:
        above = waiting.pop()
        for name, found in top.names(above):
            path = above + b"/" + name if above else name
            if but(path):
                continue
            _refuse_stopped(stop)
            left_out_here = path in leave_out
            holes += 0 if left_out_here else _holes(found)
            if holes > settings.ACW_ARCHIVE_MAX_SIZE:
                raise ArchiveTooLarge(
                    f"its files have {holes} bytes more than they take on the disk, as {shown(path)} has, and at most"
                    f" {settings.ACW_ARCHIVE_MAX_SIZE} are archived (ACW_ARCHIVE_MAX_SIZE); remove what is not needed"
                )
            entry = None if left_out_here else _entry(top, path, found, stop)
            if entry is None:
                left_out.append(path)
                continue
            entries.append(entry)
            if entry.kind is Kind.DIRECTORY:
                waiting.append(path)
            if len(entries) > ENTRIES_MOST:
                raise ArchiveTooLarge(
                    f"there are more than {ENTRIES_MOST} files and directories; remove what is not needed, as"
                    f" {shown(above) or 'the top'} has many"
                )
    entries.sort(key=lambda entry: entry.path)
    return Manifest(tuple(entries), tuple(sorted(left_out)))


def _refuse_stopped(stop: Stop | None) -> None:
    if stop is not None and stop():
        raise GitStopped("archive", "was ended because the caller stops")


def _holes(found: os.stat_result) -> int:
    """The bytes of a file that were never written: reading them costs time, and no disk bounds how many there are."""
    if not stat.S_ISREG(found.st_mode):
        return 0
    return max(0, found.st_size - found.st_blocks * _BLOCK)


def _entry(
    top: Top, path: bytes, found: os.stat_result, stop: Stop | None
) -> Entry | None:
    mode = found.st_mode
    if stat.S_ISDIR(mode):
        return Entry(path, Kind.DIRECTORY, mode & _DIRECTORY_MODE)
    if stat.S_ISLNK(mode):
        return _link(path, top.link(path))
    if stat.S_ISFIFO(mode):
        return Entry(path, Kind.FIFO, mode & _FILE_MODE)
    if stat.S_ISREG(mode):
        return _file(top, path, found, stop)
    return None


def _link(path: bytes, target: bytes) -> Entry:
    digest = hashlib.sha256(target).hexdigest()
    return Entry(path, Kind.LINK, 0o777, len(target), digest, blob_name(target))


def _file(top: Top, path: bytes, found: os.stat_result, stop: Stop | None) -> Entry:
    digest, blob = hashlib.sha256(), _blob_hash(found.st_size)
    size = 0
    with top.file(path) as opened:
        mode = os.fstat(opened.fileno()).st_mode
        while chunk := opened.read(reading.CHUNK):
            digest.update(chunk)
            blob.update(chunk)
            size += len(chunk)
            _refuse_stopped(stop)
    if size != found.st_size:
        raise reading.changed(path)
    return Entry(
        path, Kind.FILE, mode & _FILE_MODE, size, digest.hexdigest(), blob.hexdigest()
    )


def named(entries: Iterable[Entry]) -> str:
    """The first of them, as people can read them."""
    names = sorted({shown(entry.path) or "its directory" for entry in entries})
    more = f" and {len(names) - _NAMED_MOST} more" if len(names) > _NAMED_MOST else ""
    return ", ".join(names[:_NAMED_MOST]) + more


def blob_name(content: bytes) -> str:
    """What git calls these bytes."""
    name = _blob_hash(len(content))
    name.update(content)
    return name.hexdigest()


def _blob_hash(size: int) -> hashlib._Hash:
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def as_bytes(path: str) -> bytes:
    """The path that :meth:`Manifest.as_json` wrote as this text."""
    return path.encode("utf-8", "surrogateescape")
