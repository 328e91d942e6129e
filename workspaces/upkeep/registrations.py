"""Git's own list of a clone's worktrees, read and mended; knows no rows. Whoever changes it has the repository's lock.

Agents can write all of it, so that nothing is followed that is a link. Git's own commands for this,
``worktree prune`` and ``repair``, take no path, and would forget what is only away for a while.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from workspaces import worktrees
from workspaces.exceptions import OutsideDataDirectory
from workspaces.repository import Repository, Stop

LOCK_REASON = "acw"
"""How the reason begins for which ours are locked."""

_GITDIR = "gitdir"
UNFINISHED = ".registering"
"""Where a registration is made before it is moved to its place, in the workspace's directory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Registration:
    """``admin`` is where the clone keeps the worktree's HEAD and index; ``path`` is where it says that the worktree is."""

    admin: Path
    path: Path
    lock_reason: str

    @property
    def is_ours(self) -> bool:
        return self.lock_reason.startswith(LOCK_REASON)


class Link(StrEnum):
    """What a directory's ``.git`` says of the registration that it should belong to."""

    POINTS_BACK = "points_back"
    ABSENT = "absent"
    BROKEN = "broken"
    ELSEWHERE = "elsewhere"
    ODD = "odd"


def all_of(repository: Repository) -> list[Registration]:
    """Every registration of the clone that can be read, in the order of their names.

    Raises OSError, and :class:`~workspaces.exceptions.OutsideDataDirectory` where they are kept behind a symbolic link.
    """
    parent = _parent(repository)
    try:
        names = sorted(os.listdir(parent))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = []
    for name in names:
        admin = parent / name
        link = None if admin.is_symlink() else _line(admin / _GITDIR)
        if link:
            found.append(
                Registration(
                    admin=admin,
                    # Relative ones are git's since 2.48.
                    path=Path(os.path.normpath(admin / link)).parent,
                    lock_reason=_line(admin / "locked") or "",
                )
            )
    return found


def link_of(directory: Path, admin: Path | None) -> Link:
    """What the directory says of ``admin``; None: it has no registration."""
    link = directory / ".git"
    try:
        mode = link.lstat().st_mode
    except FileNotFoundError:
        return Link.ABSENT
    if not stat.S_ISREG(mode):
        return Link.ODD
    target = target_of(directory)
    if target is None:
        return Link.BROKEN
    if admin is not None and target == admin:
        return Link.POINTS_BACK
    return Link.ELSEWHERE if os.path.lexists(target) else Link.BROKEN


def target_of(directory: Path) -> Path | None:
    """Where the directory says that its registration is."""
    text = _line(directory / ".git") or ""
    target = text.removeprefix("gitdir: ")
    return None if target == text else Path(os.path.normpath(directory / target))


def relink(directory: Path, admin: Path) -> None:
    """Have the directory's ``.git`` say that ``admin`` is its registration; raises OSError where it is no file."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(".git", dir_fd=descriptor)  # fails for a directory
        _write(".git", f"gitdir: {admin}\n", directory=descriptor)
    finally:
        os.close(descriptor)


def repoint(registration: Registration, path: Path) -> None:
    """Have the registration say that its worktree is at ``path``, as after a move."""
    descriptor = os.open(
        registration.admin, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    )
    try:
        new = f"{_GITDIR}.new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new, dir_fd=descriptor)
        _write(new, f"{path / '.git'}\n", directory=descriptor)
        os.rename(new, _GITDIR, src_dir_fd=descriptor, dst_dir_fd=descriptor)
    finally:
        os.close(descriptor)


def rebuild(
    repository: Repository,
    path: Path,
    branch: str,
    *,
    default: str,
    reason: str = LOCK_REASON,
    stop: Stop | None = None,
) -> Path:
    """Register the directory at ``path`` again, of which git has forgotten everything; not a byte in it but ``.git`` changes.

    HEAD is ``branch`` again, and the index what that has; without the branch, or where another worktree has it, HEAD is the commit
    alone. What was only staged is a change like any other afterwards. Can be interrupted anywhere, and called again.
    Returns the registration. Raises :class:`~workspaces.exceptions.GitError` and OSError.
    """
    unfinished = repository.directory / UNFINISHED
    worktrees.delete_tree(unfinished)
    unfinished.mkdir(mode=0o700)
    head, commit = _head_for(repository, branch, default=default)
    for name, line in {
        "HEAD": head,
        "commondir": "../..",
        _GITDIR: str(path / ".git"),
        "locked": reason,
    }.items():
        (unfinished / name).write_text(f"{line}\n")
    if commit is not None:
        output = f"--index-output={unfinished / 'index'}"
        repository.run(["read-tree", output, commit], stop=stop)
    parent = _parent(repository)
    parent.mkdir(exist_ok=True)
    admin = free(parent, path.name)
    os.rename(unfinished, admin)
    relink(path, admin)
    return admin


def heads(repository: Repository) -> set[str]:
    """The names (``refs/heads/…``) of the branches that worktrees have checked out."""
    found = set()
    for registration in all_of(repository):
        line = _line(registration.admin / "HEAD") or ""
        if line.startswith("ref: "):
            found.add(line.removeprefix("ref: "))
    return found


def _parent(repository: Repository) -> Path:
    parent = repository.path / "worktrees"
    if parent.is_symlink():
        raise OutsideDataDirectory(
            f"{parent} is a symbolic link; nothing behind it is looked at"
        )
    return parent


def _head_for(
    repository: Repository, branch: str, *, default: str
) -> tuple[str, str | None]:
    commit = repository.local_branch(branch)
    name = f"refs/heads/{branch}"
    if commit is not None and name not in heads(repository):
        return f"ref: {name}", commit
    start = commit or (repository.remote_branch(default) if default else None)
    return (start, start) if start is not None else (f"ref: {name}", None)


def free(parent: Path, name: str) -> Path:
    """A path in ``parent`` at which nothing is: ``name``, or that with a number, as git names registrations too."""
    candidate, number = parent / name, 0
    while os.path.lexists(candidate):
        number += 1
        candidate = parent / f"{name}{number}"
    return candidate


def _line(path: Path) -> str | None:
    """The file's only line; None where it is no file, or what is in it is no line."""
    read = worktrees.read_line(path)
    line = None if read is None else os.fsdecode(read)
    return None if line is None or "\0" in line or "\n" in line else line


def _write(name: str, text: str, *, directory: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(name, flags, 0o644, dir_fd=directory)
    try:
        os.write(descriptor, os.fsencode(text))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
