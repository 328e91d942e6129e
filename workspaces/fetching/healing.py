"""Mending a clone whose objects are damaged: they are put aside, and what the remote has of them is fetched again.

Nothing is deleted. What only the clone had is taken out of a damaged pack as far as it can be read. Where that was
interrupted, what was put aside says so by its name, and the next fetch goes on with it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import logging
import os
import re
import secrets
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from workspaces import git, paths
from workspaces.events import LogEvent
from workspaces.exceptions import (
    GitDamaged,
    GitError,
    GitFailed,
    GitStopped,
    GitTimeout,
)
from workspaces.failures import Failure, classify
from workspaces.repository import Repository, Stop

log = logging.getLogger(__name__)

_LOOSE = re.compile(r"\b([0-9a-f]{2})/?([0-9a-f]{38}(?:[0-9a-f]{24})?)\b")
_PACK = re.compile(r"\bpack-[0-9a-f]{40,64}(?=\.(?:pack|idx)\b)")
_OBJECT_DIRECTORY = re.compile(r"[0-9a-f]{2}")
_PACKS_INDEX = "multi-pack-index"
_CHUNK = 1024 * 1024
_UNFINISHED = "unfinished-"


def is_unfinished(repository: Repository) -> bool:
    """Whether something was put aside of which the clone has not yet got back what it can."""
    return any(_unfinished(repository))


def heal(
    repository: Repository,
    url: str,
    complaint: str,
    *,
    timeout: dt.timedelta | None = None,
    stop: Stop | None = None,
) -> int:
    """Put aside what is damaged, fetch it again, and see that nothing is missing then; return how many branches changed.

    ``complaint`` is what git said; what it names is looked at first. With what an earlier call has put aside and not finished, this one
    goes on. The caller has the lock for fetches.
    Raises :class:`~workspaces.exceptions.GitDamaged` where something is missing still, and ``GitError``.
    """
    name = f"{_UNFINISHED}{secrets.token_hex(4)}"
    aside = paths.quarantine_path(repository.directory) / name
    goes_on = is_unfinished(repository)
    moved = _put_aside(repository, complaint, aside, stop=stop)
    if not moved and not goes_on:
        moved = _put_aside(repository, _look(repository, stop=stop), aside, stop=stop)
    try:
        changed = repository.fetch(url, timeout=timeout, stop=stop, refetch=True)
    except GitStopped:
        raise
    except GitError as error:
        # Nobody's work waits for a remote that is away. What is full now has no room for it either.
        if classify(error) is not Failure.DISK_FULL:
            _finish(repository, stop=stop)
        raise
    _finish(repository, stop=stop)
    _refuse_missing(repository, stop=stop)
    log.warning(
        LogEvent.WORKSPACE_HEALED,
        extra={"directory": str(repository.directory), "put_aside": len(moved)},
    )
    return changed


def _unfinished(repository: Repository) -> Iterator[Path]:
    with (
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
        os.scandir(paths.quarantine_path(repository.directory)) as entries,
    ):
        for entry in entries:
            if entry.name.startswith(_UNFINISHED):
                yield Path(entry.path)


def _finish(repository: Repository, *, stop: Stop | None) -> None:
    for aside in list(_unfinished(repository)):
        for pack in filter(_is_ours, sorted(aside.glob("*.pack"))):
            _take_out(repository, pack, stop=stop)
        aside.rename(aside.with_name(aside.name.removeprefix(_UNFINISHED)))


def _refuse_missing(repository: Repository, *, stop: Stop | None) -> None:
    arguments = ["fsck", "--connectivity-only", "--no-dangling", "--no-progress"]
    try:
        repository.run(arguments, stop=stop)
    except GitFailed as error:
        raise GitDamaged(
            "fsck",
            "found that objects are missing which the remote does not have",
            stderr=error.stderr,
        ) from None


def _look(repository: Repository, *, stop: Stop | None) -> str:
    """What git says of every object."""
    arguments = ["fsck", "--full", "--no-dangling", "--no-progress"]
    try:
        looked = repository.run(arguments, stop=stop, accept=range(256))
    except GitStopped:
        raise
    except GitError as error:
        return error.stderr
    return looked.stderr + looked.stdout.decode(errors="replace")


def _put_aside(
    repository: Repository, complaint: str, aside: Path, *, stop: Stop | None
) -> list[Path]:
    """Move the damaged ones of those named, and every empty one; return where they are now."""
    objects = repository.path / "objects"
    damaged = [path for path in _empty(objects) if _is_ours(path)]
    for first, rest in set(_LOOSE.findall(complaint)):
        path = objects / first / rest
        if path not in damaged and _is_ours(path) and not _is_sound(path):
            damaged.append(path)
    for name in sorted(set(_PACK.findall(complaint))):
        # A remote can say what it likes.
        if not _is_sound_pack(repository, objects / "pack" / f"{name}.idx", stop=stop):
            damaged += filter(_is_ours, sorted((objects / "pack").glob(f"{name}.*")))
    index = objects / "pack" / _PACKS_INDEX
    if _PACKS_INDEX in complaint and not _is_sound_index(repository, stop=stop):
        # While it is there git does nothing at all; maintenance makes another.
        damaged += filter(_is_ours, [index])
    moved = []
    for path in damaged:
        aside.mkdir(parents=True, exist_ok=True)
        there = aside / "-".join(path.relative_to(objects).parts)
        os.rename(path, there)
        moved.append(there)
    return moved


def _empty(objects: Path) -> Iterator[Path]:
    """What a loss of power leaves of objects that were just written."""
    for directory in sorted(objects.iterdir()):
        if _OBJECT_DIRECTORY.fullmatch(directory.name) and not directory.is_symlink():
            for path in sorted(directory.iterdir()):
                if path.lstat().st_size == 0:
                    yield path


def _is_ours(path: Path) -> bool:
    """Whether it is a regular file, and not behind a link."""
    with contextlib.suppress(OSError):
        return (
            stat.S_ISREG(path.lstat().st_mode) and path.parent.resolve() == path.parent
        )
    return False


def _is_sound(path: Path) -> bool:
    """Whether what the loose object holds is what its name says."""
    name = path.parent.name + path.name
    digest = hashlib.new("sha1" if len(name) == 40 else "sha256", usedforsecurity=False)
    unpacking = zlib.decompressobj()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                while chunk:
                    digest.update(unpacking.decompress(chunk, _CHUNK))
                    chunk = unpacking.unconsumed_tail
        digest.update(unpacking.flush())
    except (OSError, zlib.error):
        return False
    return digest.hexdigest() == name


def _is_sound_pack(repository: Repository, index: Path, *, stop: Stop | None) -> bool:
    return _passes(repository, ["verify-pack", "--", str(index)], stop=stop)


def _is_sound_index(repository: Repository, *, stop: Stop | None) -> bool:
    arguments = ["multi-pack-index", "verify", "--no-progress"]
    return _passes(repository, arguments, stop=stop)


def _passes(repository: Repository, arguments: list[str], *, stop: Stop | None) -> bool:
    try:
        repository.run(arguments, stop=stop)
    except GitStopped:
        raise
    except GitError:
        return False
    return True


def _take_out(repository: Repository, pack: Path, *, stop: Stop | None) -> None:
    """Put back what can still be read of a damaged pack; the rest stays aside. Raises where there is no room for it."""
    try:
        git.run(
            ["unpack-objects", "-q", "-r"],
            git_dir=repository.path,
            stdin=pack,
            longest=settings.ACW_CLONE_TIMEOUT,
            stop=stop,
        )
    except GitTimeout:
        return
    except GitFailed as error:
        if classify(error) is Failure.DISK_FULL:
            raise
