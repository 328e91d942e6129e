"""Worktrees as git and the disk know them. Knows no rows; whoever calls it has the repository's lock.

``git worktree prune`` is never used: it forgets every worktree whose directory is away at that moment,
and with it an index, commits on no branch, and a rebase in progress.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from workspaces import git
from workspaces.exceptions import (
    BranchInUse,
    EmptyRepository,
    GitError,
    GitFailed,
    OutsideDataDirectory,
)
from workspaces.repository import Repository, Stop, without_filters

_ALREADY = ("already checked out at", "already used by worktree at")


def add(
    repository: Repository,
    path: Path,
    branch: str,
    *,
    default: str,
    stop: Stop | None = None,
) -> None:
    """Check ``branch`` out at ``path``, which must not exist.

    A branch of the clone is checked out as it is; one that only the remote has begins at the
    remote's commit, and a new one at that of the ``default`` branch. What fails leaves neither a
    directory nor a new branch behind.

    Raises :class:`~workspaces.exceptions.BranchInUse`, ``EmptyRepository`` and ``GitError``.
    """
    new = repository.local_branch(branch) is None
    start = _start_of(repository, branch, default=default) if new else branch
    # --no-track: writes nothing into the configuration, whose lock does not wait.
    create = ["--no-track", "-b", branch] if new else []
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        repository.run(
            # --lock: no agent's "git worktree prune" can forget it.
            [
                "worktree",
                "add",
                "--lock",
                "--reason",
                "acw",
                "--no-checkout",
                *create,
                "--",
                str(path),
                start,
            ],
            stop=stop,
        )
        _check_out(repository, path, stop=stop)
    except BaseException as error:
        discard(repository, path)
        if new:
            _delete_branch(repository, branch, at=start)
        if isinstance(error, GitFailed) and any(
            said in error.stderr for said in _ALREADY
        ):
            raise BranchInUse(
                f"branch {branch!r} is checked out in another worktree; "
                "switch that one to another branch, or acquire another branch"
            ) from None
        raise


def _start_of(repository: Repository, branch: str, *, default: str) -> str:
    commit = repository.remote_branch(branch)
    if commit is None and default:
        commit = repository.remote_branch(default)
    if commit is None:
        raise EmptyRepository(
            "the remote had no default branch with a commit at the last fetch: push one and fetch, "
            "or acquire a branch that it has"
        )
    return commit


def _check_out(repository: Repository, path: Path, *, stop: Stop | None) -> None:
    admin = registration(repository, path)
    if admin is None:
        raise GitError("worktree", f"add left no registration of {path}")
    git.run(
        ["reset", "--quiet", "--hard", "--no-recurse-submodules"],
        cwd=path,
        git_dir=admin,
        work_tree=path,
        # Looked up here and not in the clone: configuration can depend on the worktree.
        config=without_filters(admin),
        stop=stop,
    )


def _delete_branch(repository: Repository, branch: str, *, at: str) -> None:
    """Only where it still is at that commit: nobody has committed to it."""
    repository.run(["update-ref", "-d", f"refs/heads/{branch}", at], accept=(0, 1, 128))


def registration(repository: Repository, path: Path) -> Path | None:
    """The directory in which the clone keeps this worktree's HEAD and index; None: git does not know it."""
    wanted = os.fsencode(path / ".git")
    for entry in sorted((repository.path / "worktrees").glob("*/gitdir")):
        if not entry.parent.is_symlink() and entry.read_bytes().rstrip(b"\n") == wanted:
            return entry.parent
    return None


def points_back(directory: Path, admin: Path) -> bool:
    """Whether the worktree in ``directory`` says that ``admin`` is its registration."""
    link = directory / ".git"
    try:
        if not stat.S_ISREG(link.lstat().st_mode):
            return False
        return link.read_bytes().rstrip(b"\n") == b"gitdir: " + os.fsencode(admin)
    except OSError:
        return False


def forget(repository: Repository, path: Path) -> None:
    """Remove the registration of a worktree whose directory is not there; its branch stays."""
    if registration(repository, path) is not None:
        # Twice: also where it is locked, as ours are.
        repository.run(["worktree", "remove", "--force", "--force", "--", str(path)])


def discard(repository: Repository, path: Path) -> None:
    """Remove a worktree that was never handed out: directory and registration."""
    delete_tree(path)
    forget(repository, path)


def delete_tree(path: Path) -> None:
    """Delete a directory with all that is in it, read-only directories too; never through a link.

    Raises :class:`~workspaces.exceptions.OutsideDataDirectory` where it is a link itself.
    """
    if not os.path.lexists(path):
        return
    if path.is_symlink():
        raise OutsideDataDirectory(
            f"{path} is a symbolic link; nothing below it is touched"
        )
    _make_deletable(path)
    for directory, names, _ in os.walk(path):
        for name in names:
            entry = Path(directory, name)
            if not entry.is_symlink():
                _make_deletable(entry)
    shutil.rmtree(path)


def _make_deletable(directory: Path) -> None:
    mode = stat.S_IMODE(directory.stat().st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        directory.chmod(mode | stat.S_IRWXU)
