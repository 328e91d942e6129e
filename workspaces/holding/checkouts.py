"""Putting a worktree's directory right where it is gone or is something else; nothing that is found is deleted.

What git still keeps of the worktree (its index, where HEAD is and was, a merge in progress) is used again. Where that cannot be
done, the commits that only it leads to get branches ``acw/rescued-…``, and the rest is put aside.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from workspaces import ledger, paths, seal, worktrees
from workspaces.events import LogEvent
from workspaces.exceptions import GitError, GitStopped, GitTimeout, WorktreeError
from workspaces.holding import aside, leases, rescuing, staged
from workspaces.models import LedgerEntry, Worktree
from workspaces.plumbing import view
from workspaces.plumbing.view import View
from workspaces.pruning import removal
from workspaces.repository import Repository, Stop
from workspaces.upkeep import registrations

log = logging.getLogger(__name__)

ACTOR = "system"

NEW_BRANCH = "its branch is new"
"""The ``state_reason`` of one that is being made together with its branch."""

_MAKING = "acw:making"
"""Why one is locked that is not checked out to the end."""
_UNFINISHED = ".making"

_LISTING_MOST = 64 * 1024 * 1024


def is_whole(repository: Repository, path: Path) -> bool:
    """Whether the worktree's directory is there, is what git knows as this worktree, and was checked out to the end."""
    admin = worktrees.known_as(repository, path)
    return (
        admin is not None and worktrees.read_line(admin / "locked") != _MAKING.encode()
    )


def make_whole(
    repository: Repository, worktree: Worktree, *, stop: Stop | None
) -> None:
    """See that the worktree's directory is there and is what git knows as this worktree.

    The caller has the repository's lock. Raises :class:`~workspaces.exceptions.OutsideDataDirectory`, ``ConfigTampered``,
    ``BranchInUse``, ``EmptyRepository``, ``GitError`` and OSError.
    """
    path = paths.own_worktree_path(worktree)
    if is_whole(repository, path):
        return
    seal.check(worktree.workspace, repository)
    if register_again(repository, worktree, stop=stop):
        return
    admin = worktrees.registration(repository, path)
    _check_out_again(repository, worktree, path, admin, stop=stop)
    _record(worktree, "its directory was not there, and was checked out again")


def register_again(
    repository: Repository, worktree: Worktree, *, stop: Stop | None
) -> bool:
    """Have git know the worktree's directory again where it has forgotten it; False: it has not, or nothing is there.

    Not a file in it changes. The caller has the repository's lock, and has looked at the seal.
    """
    path = paths.own_worktree_path(worktree)
    if worktrees.registration(repository, path) is not None or not _was_forgotten(
        repository, path
    ):
        return False
    registrations.rebuild(
        repository,
        path,
        worktree.branch,
        default=worktree.workspace.default_branch,
        stop=stop,
    )
    _record(worktree, "git had forgotten its directory, and knows it again")
    return True


def _record(worktree: Worktree, reason: str) -> None:
    ledger.record(
        LedgerEntry.Action.MENDED,
        actor=ACTOR,
        worktree=worktree,
        data={"reason": reason},
    )
    log.warning(
        LogEvent.WORKTREE_MENDED, extra={**leases.facts(worktree), "reason": reason}
    )


def _was_forgotten(repository: Repository, path: Path) -> bool:
    """Whether the directory is this worktree, by what it says itself, and its registration is gone."""
    target = None if path.is_symlink() else registrations.target_of(path)
    return (
        target is not None
        and target.parent == repository.path / "worktrees"
        and not os.path.lexists(target)
    )


def _check_out_again(
    repository: Repository,
    worktree: Worktree,
    path: Path,
    admin: Path | None,
    *,
    stop: Stop | None,
) -> None:
    if os.path.lexists(path):
        _put_aside(repository, worktree, path, what="what stood in its place")
    if admin is None or not _again(repository, worktree, path, admin, stop=stop):
        worktrees.add(
            repository,
            path,
            worktree.branch,
            default=worktree.workspace.default_branch,
            # Whoever dies meanwhile has left it so; who acquires it says otherwise.
            reason=_MAKING,
            stop=stop,
        )


def lock_reason(worktree: Worktree, *, fencing_no: int | None = None) -> str:
    """What git is told of why nobody may forget the worktree: its hold, by default the one that the row has."""
    number = worktree.fencing_no if fencing_no is None else fencing_no
    return f"acw:{worktree.pk}:{number}"


def sweep(repository: Repository) -> None:
    """Delete what interrupted calls have left that were making a worktree or a registration; the caller has the repository's lock."""
    for name in (_UNFINISHED, registrations.UNFINISHED):
        removal.delete_tree(repository.directory / name)


def discard_interrupted(repository: Repository, worktree: Worktree) -> None:
    """Remove what is left of a worktree whose making was interrupted; nobody was ever given it.

    A branch that was made for it goes too, since the next worktree of that name would begin at what may be old by then; not
    one with a commit that the remote has not. The caller has the repository's lock, so who was making it is dead.
    """
    worktrees.discard(repository, paths.own_worktree_path(worktree))
    is_new = worktree.state_reason == NEW_BRANCH
    if is_new and f"refs/heads/{worktree.branch}" not in registrations.heads(
        repository
    ):
        worktrees.discard_branch(repository, worktree.branch)
    Worktree.objects.filter(pk=worktree.pk, state=Worktree.State.CREATING).delete()
    log.warning(LogEvent.WORKTREE_DISCARDED, extra=leases.facts(worktree))


def _put_aside(
    repository: Repository, worktree: Worktree, path: Path, *, what: str
) -> None:
    moved = aside.put_aside(repository, path)
    said = f"{what} is in {moved} now"
    Worktree.objects.filter(pk=worktree.pk).update(state_reason=said)
    ledger.record(
        LedgerEntry.Action.QUARANTINED,
        actor=ACTOR,
        worktree=worktree,
        data={"reason": said, "moved_to": str(moved)},
    )
    log.warning(
        LogEvent.WORKTREE_PUT_ASIDE,
        extra={**leases.facts(worktree), "moved_to": str(moved)},
    )


def _again(
    repository: Repository,
    worktree: Worktree,
    path: Path,
    admin: Path,
    *,
    stop: Stop | None,
) -> bool:
    """Check out what its registration has, or else put that aside, its commits saved, and return False."""
    # Under another name until it is whole.
    unfinished = repository.directory / _UNFINISHED
    removal.delete_tree(unfinished)
    try:
        _check_out(repository, unfinished, admin, stop=stop)
        path.parent.mkdir(exist_ok=True)
        os.rename(unfinished, path)
    except (GitStopped, GitTimeout):
        raise
    except (GitError, WorktreeError):
        prefix = f"acw/rescued-{worktree.pk}"
        rescuing.rescue(repository, admin, prefix=prefix, stop=stop)
        staged.keep(repository, admin, prefix=prefix, stop=stop)
        _put_aside(repository, worktree, admin, what="what git kept of it")
        return False
    finally:
        removal.delete_tree(unfinished)
    return True


def _check_out(
    repository: Repository, path: Path, admin: Path, *, stop: Stop | None
) -> None:
    path.mkdir()
    (path / ".git").write_bytes(b"gitdir: " + os.fsencode(admin) + b"\n")
    with view.opened(repository.path, admin, path) as seen:
        if not (admin / "index").is_file():
            seen.run(["read-tree", "HEAD"], stop=stop)
        else:
            _refuse_leading_out(seen, stop=stop)
        seen.run(["checkout-index", "--all", "--force", "--quiet"], stop=stop)
        # There are conflicts, or a lock that somebody left, which is not ours to remove.
        seen.refresh(stop=stop, accept=(0, 1, 128))


def _refuse_leading_out(seen: View, *, stop: Stop | None) -> None:
    """An index is a file that agents can write: git does not ask where the names in it lead."""
    listed = seen.run(["ls-files", "-z"], stop=stop, most=_LISTING_MOST).stdout
    for name in listed.split(b"\0"):
        parts = name.lower().split(b"/")
        if name and (b".." in parts or b"" in parts or b".git" in parts):
            raise WorktreeError(
                f"the index of {seen.admin} has a name that leads elsewhere"
            )
