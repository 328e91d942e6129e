"""Worktrees as git and the disk know them. Knows no rows; whoever calls it has the repository's lock.

``git worktree prune`` is never used: it forgets every worktree whose directory is away at that moment,
and with it an index, commits on no branch, and a rebase in progress.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from workspaces.exceptions import (
    BranchInUse,
    EmptyRepository,
    GitError,
    GitFailed,
    OutsideDataDirectory,
)
from workspaces.plumbing import view
from workspaces.pruning import removal
from workspaces.repository import Repository, StartPoints, Stop

_LONGEST_LINE = 8192
_ALREADY = ("already checked out at", "already used by worktree at")


def add(
    repository: Repository,
    path: Path,
    branch: str,
    *,
    default: str,
    reason: str = "acw",
    stop: Stop | None = None,
) -> None:
    """Check ``branch`` out at ``path``, which must not exist, and lock it for this ``reason``.

    A branch of the clone is checked out as it is; one that only the remote has begins at the
    remote's commit, and a new one at that of the ``default`` branch. What fails leaves neither a
    directory nor a new branch behind.

    Raises :class:`~workspaces.exceptions.BranchInUse`, ``EmptyRepository`` and ``GitError``.
    """
    found = repository.start_points(branch, default=default)
    new = found.local is None
    start = _start_of(found) if new else branch
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
                reason,
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


def _start_of(found: StartPoints) -> str:
    commit = found.remote or found.default
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
    with view.opened(repository.path, admin, path) as seen:
        seen.run(["read-tree", "--reset", "-u", "HEAD"], stop=stop)
        seen.refresh(stop=stop, accept=(0, 1))


def _delete_branch(repository: Repository, branch: str, *, at: str) -> None:
    """Only where it still is at that commit: nobody has committed to it."""
    repository.run(["update-ref", "-d", f"refs/heads/{branch}", at], accept=(0, 1, 128))


def discard_branch(repository: Repository, branch: str) -> None:
    """Delete a branch that no worktree is on, where the remote has all its commits."""
    name = f"refs/heads/{branch}"
    commit = repository.commit_of(name)
    if commit is None:
        return
    beyond = ["rev-list", "--max-count=1", commit, "--not", "--remotes", "--"]
    if not repository.run(beyond).stdout:
        _delete_branch(repository, branch, at=commit)


def registration(repository: Repository, path: Path) -> Path | None:
    """The directory in which the clone keeps this worktree's HEAD and index; None: git does not know it."""
    wanted = os.fsencode(path / ".git")
    listed = repository.path / "worktrees"
    if listed.is_symlink():
        return None
    for entry in sorted(listed.glob("*/gitdir")):
        if not entry.parent.is_symlink() and read_line(entry) == wanted:
            return entry.parent
    return None


def points_back(directory: Path, admin: Path) -> bool:
    """Whether the worktree in ``directory`` says that ``admin`` is its registration."""
    return read_line(directory / ".git") == b"gitdir: " + os.fsencode(admin)


def known_as(repository: Repository, path: Path) -> Path | None:
    """The registration of the worktree whose directory is there and belongs to it; asks no other worktree's."""
    said = read_line(path / ".git") or b""
    admin = Path(os.fsdecode(said.removeprefix(b"gitdir: ")))
    belongs = (
        said.startswith(b"gitdir: ")
        and admin.parent == repository.path / "worktrees"
        and admin.name not in {"", ".", ".."}
        and not admin.is_symlink()
        and not admin.parent.is_symlink()
        and read_line(admin / "gitdir") == os.fsencode(path / ".git")
    )
    return admin if belongs else None


def read_line(file: Path) -> bytes | None:
    """The line that a file of git's consists of; None: it is no regular file."""
    content = read_regular(file, most=_LONGEST_LINE)
    return None if content is None else content.rstrip(b"\n")


def read_regular(file: Path, *, most: int) -> bytes | None:
    """The first ``most`` bytes of a file that agents may have put something else in the place of; None: it is no regular file."""
    try:
        # Neither through a link nor waiting for the other end of a FIFO.
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):  # ValueError: a name with NUL
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as opened:
            return opened.read(most)
    finally:
        os.close(descriptor)


def lock(admin: Path, reason: str) -> None:
    """Have git refuse to forget the worktree, for this reason, whether it was locked before or not.

    Raises OSError, and :class:`~workspaces.exceptions.OutsideDataDirectory` where ``admin`` is a symbolic link.
    """
    for part in (admin, admin.parent):
        if part.is_symlink():
            raise OutsideDataDirectory(
                f"{part} is a symbolic link; nothing is written there"
            )
    # Another name first: at no moment is it unlocked, and a link of that name is not written through.
    written = admin / f".locked-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(written, flags, 0o666)
    try:
        os.write(descriptor, f"{reason}\n".encode())
    finally:
        os.close(descriptor)
    os.rename(written, admin / "locked")


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
    """Delete a directory of a workspace that holds no clone; see :func:`workspaces.pruning.removal.delete_tree`."""
    removal.delete_tree(path)
