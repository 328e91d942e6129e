"""Mending a clone whose objects are damaged: they are put aside, and what the remote has of them is fetched again.

Nothing is deleted. What only the clone had is taken out of a damaged pack as far as it can be read.
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

from workspaces import git, paths
from workspaces.events import LogEvent
from workspaces.exceptions import (
    GitDamaged,
    GitError,
    GitFailed,
    GitStopped,
    GitTimeout,
)
from workspaces.repository import Repository, Stop

log = logging.getLogger(__name__)

_LOOSE = re.compile(r"\b([0-9a-f]{2})/?([0-9a-f]{38}(?:[0-9a-f]{24})?)\b")
_PACK = re.compile(r"\bpack-[0-9a-f]{40,64}(?=\.(?:pack|idx)\b)")
_OBJECT_DIRECTORY = re.compile(r"[0-9a-f]{2}")
_PACKS_INDEX = "multi-pack-index"
_CHUNK = 1024 * 1024


def heal(
    repository: Repository,
    url: str,
    complaint: str,
    *,
    timeout: dt.timedelta | None = None,
    stop: Stop | None = None,
) -> int:
    """Put aside what is damaged, fetch it again, and see that nothing is missing then; return how many branches changed.

    ``complaint`` is what git said; what it names is looked at first. The caller has the lock for fetches.
    Raises :class:`~workspaces.exceptions.GitDamaged` where something is missing still, and ``GitError``.
    """
    aside = paths.quarantine_path(repository.directory) / secrets.token_hex(4)
    moved = _put_aside(repository, complaint, aside, stop=stop)
    if not moved:
        moved = _put_aside(repository, _look(repository, stop=stop), aside, stop=stop)
    changed = repository.fetch(url, timeout=timeout, stop=stop, refetch=True)
    for path in moved:
        if path.suffix == ".pack":
            _take_out(repository, path, stop=stop)
    _refuse_missing(repository, stop=stop)
    log.warning(
        LogEvent.WORKSPACE_HEALED,
        extra={"directory": str(repository.directory), "put_aside": len(moved)},
    )
    return changed


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
    """Put back what can still be read of a damaged pack; the rest stays aside."""
    with contextlib.suppress(GitFailed, GitTimeout):
        git.run(
            ["unpack-objects", "-q", "-r"],
            git_dir=repository.path,
            stdin=pack,
            stop=stop,
            accept=range(256),
        )
