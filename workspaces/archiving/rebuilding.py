"""A worktree on the disk again: its files made beside, compared with the archive, and put in their place by two renames."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workspaces import paths, worktrees
from workspaces.archiving import (
    composing,
    manifest,
    registration,
    store,
    tags,
    unpacking,
)
from workspaces.archiving.branches import Placed
from workspaces.archiving.composing import ADMIN, FILES, Parts
from workspaces.archiving.manifest import Manifest
from workspaces.archiving.reading import Top
from workspaces.archiving.snapshot import LINK, read_files
from workspaces.archiving.store import Store
from workspaces.exceptions import ArchiveDamaged, ArchiveError
from workspaces.holding import aside, checkouts, rescuing, staged
from workspaces.models import Worktree, WorktreeArchive
from workspaces.plumbing import view
from workspaces.repository import Repository, Stop
from workspaces.upkeep import registrations

_WRITABLE = 0o700


@dataclass(frozen=True, kw_only=True, slots=True)
class Staged:
    """What was made beside its place; None: the archive has none."""

    files: Path | None
    admin: Path | None
    mode: int


@contextlib.contextmanager
def made_beside(
    repository: Repository, ours: Store, archive: WorktreeArchive, parts: Parts
) -> Iterator[Staged]:
    """Make files and registration beside their places; what is still there afterwards is deleted.

    Raises :class:`~workspaces.exceptions.ArchiveDamaged` where they do not come out as they were archived.
    """
    above = paths.archiving_path(repository.directory)
    directory = Path(tempfile.mkdtemp(dir=above))
    try:
        mode = _WRITABLE
        files = admin = None
        if parts.files.entries and not parts.facts["is_gone"]:
            files = directory / "files"
            mode = parts.files.entries[0].mode
            unpacking.unpack(ours, archive.commit_sha, parts.files, FILES, target=files)
            with Top(files) as top:
                _compare(archive, parts.files, read_files(top, stop=ours.stop))
            # A directory that is not writable could not be moved.
            files.chmod(mode | _WRITABLE)
        if parts.facts["registration"] is not None:
            admin = directory / "admin"
            unpacking.unpack(ours, archive.commit_sha, parts.admin, ADMIN, target=admin)
            with Top(admin) as top:
                _compare(archive, parts.admin, registration.read(top, stop=ours.stop))
            admin.chmod(parts.admin.entries[0].mode | _WRITABLE)
        yield Staged(files=files, admin=admin, mode=mode)
    finally:
        worktrees.delete_tree(directory)


def hold_objects(repository: Repository, ours: Store, archive: WorktreeArchive) -> None:
    """See that the clone, whose objects ``ours`` has, holds on to every object of the archive."""
    blobs = composing.blobs_of(ours, archive.commit_sha)
    texts = {blob for path, blob in blobs.items() if path.startswith(b"tags/")}
    tags.write(ours, tags.read(ours, texts).values())
    store.point(repository, archive.ref, archive.commit_sha)


def put_in_place(
    repository: Repository,
    worktree: Worktree,
    made: Staged,
    placed: Placed,
    *,
    name: str,
    stop: Stop | None,
) -> None:
    """Have git know the worktree again, under ``name`` where that is free, and move its files to its path, which is last.

    Raises :class:`~workspaces.exceptions.GitError` and OSError.
    """
    path = Path(worktree.path)
    path.parent.mkdir(exist_ok=True)
    admin = None
    if made.admin is not None:
        admin = _register(repository, worktree, made.admin, placed, name=name)
    if made.files is None:
        # Checks out what the index has.
        checkouts.make_whole(repository, worktree, stop=stop)
        return
    if admin is not None:
        (made.files / os.fsdecode(LINK)).write_bytes(
            b"gitdir: " + os.fsencode(admin) + b"\n"
        )
    os.rename(made.files, path)
    path.chmod(made.mode)
    if admin is None:
        registrations.rebuild(
            repository,
            path,
            placed.branch,
            default=worktree.workspace.default_branch,
            reason=checkouts.lock_reason(worktree),
            stop=stop,
        )
    else:
        _refresh(repository, path, admin, stop=stop)


def is_whole(
    repository: Repository, worktree: Worktree, parts: Parts, *, stop: Stop | None
) -> bool:
    """Whether an interrupted call has brought the worktree to its place already, all of it."""
    path = Path(worktree.path)
    if worktrees.known_as(repository, path) is None:
        return False
    if parts.facts["is_gone"]:
        return True
    try:
        with Top(path) as top:
            return read_files(top, stop=stop).entries == parts.files.entries
    except ArchiveError:
        return False


def clear(
    repository: Repository, path: Path, *, is_ours: bool, stop: Stop | None = None
) -> list[Path]:
    """Make room for the worktree of ``path``; return where what stood there is now.

    What an interrupted call has registered (``is_ours``) is deleted, since it is in the archive. Of what somebody else has, the
    commits and what is staged get branches ``acw/rescued-…`` first: where it is put, git no longer holds on to them.
    """
    moved = []
    if os.path.lexists(path):
        moved.append(aside.put_aside(repository, path))
    admin = worktrees.registration(repository, path)
    if admin is not None and is_ours:
        unregister(repository, admin)
    elif admin is not None:
        prefix = f"acw/rescued-{path.name}"
        rescuing.rescue(repository, admin, prefix=prefix, stop=stop)
        staged.keep(repository, admin, prefix=prefix, stop=stop)
        moved.append(aside.put_aside(repository, admin))
    return moved


def unregister(repository: Repository, admin: Path) -> None:
    """Delete a registration that this package has made."""
    above = paths.archiving_path(repository.directory)
    above.mkdir(mode=_WRITABLE, exist_ok=True)
    going = Path(tempfile.mkdtemp(dir=above))
    os.rename(admin, going / "admin")
    worktrees.delete_tree(going)


def _register(
    repository: Repository,
    worktree: Worktree,
    made: Path,
    placed: Placed,
    *,
    name: str,
) -> Path:
    for file, text in {
        "HEAD": placed.head,
        "commondir": "../..\n",
        "gitdir": f"{worktree.path}/.git\n",
        "locked": f"{checkouts.lock_reason(worktree)}\n",
    }.items():
        # It may have been a link.
        (made / file).unlink(missing_ok=True)
        (made / file).write_bytes(text.encode(errors="surrogateescape"))
    parent = repository.path / "worktrees"
    parent.mkdir(exist_ok=True)
    admin = registrations.free(parent, name)
    os.rename(made, admin)
    return admin


def _refresh(
    repository: Repository, path: Path, admin: Path, *, stop: Stop | None
) -> None:
    """Spare every later ``git status`` the reading of all files, where none would have to be filtered for it."""
    with view.opened(repository.path, admin, path) as seen:
        if not seen.has_filters:
            seen.refresh(stop=stop, accept=(0, 1, 128))


def _compare(archive: WorktreeArchive, archived: Manifest, made: Manifest) -> None:
    if made.entries != archived.entries:
        differing = set(made.entries) ^ set(archived.entries)
        raise ArchiveDamaged(
            f"{archive}: {manifest.named(differing)} came out otherwise than archived"
        )
