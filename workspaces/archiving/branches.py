"""Where HEAD of a restored worktree is put, so that no commit is lost and ``git status`` says the truth."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workspaces import worktrees
from workspaces.archiving import registration, store
from workspaces.archiving.registration import Head
from workspaces.exceptions import GitFailed
from workspaces.models import Worktree, WorktreeArchive
from workspaces.plumbing import presentable
from workspaces.repository import Repository

_HEADS = "refs/heads/"
# Where git notes the branch that a worktree is on, or will be on again.
_NOTES = (b"HEAD", *registration.COMES_BACK_TO)
_NOTE_MOST = 4096
_NO_BRANCH = Head("", "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """``head`` is what the HEAD file says, ``branch`` the row's branch; ``note`` tells people what is not as before."""

    head: str
    branch: str
    note: str = ""


def place(
    repository: Repository,
    archive: WorktreeArchive,
    head: Head,
    *,
    back: Head = _NO_BRANCH,
) -> Placed:
    """Decide it, and make the branch again where it is gone; the caller has the repository's lock.

    A branch that is still, or again, at the commit of the archive is taken up. One that has moved, or is checked out elsewhere, is left
    alone: the worktree gets a branch ``acw/restored-…`` of its own, at its commit. ``back``: the branch that a rebase or bisection
    in progress comes back to, without which it could not be ended.
    """
    row_is_free = not _rows(archive, archive.branch)
    row_branch = archive.branch if row_is_free else ""
    if not head.branch:
        branch = row_branch or _new_branch(repository, archive, head.commit)
        note = _back_again(repository, back) if back.branch else ""
        return Placed(head=f"{head.commit}\n", branch=branch, note=note)
    short = head.branch.removeprefix(_HEADS)
    others_row = short == archive.branch and not row_is_free
    problem = (
        _had_elsewhere(short)
        if others_row or _is_in_use(repository, head.branch)
        else _taken_up(repository, head)
    )
    if not problem:
        return Placed(
            head=f"ref: {head.branch}\n",
            branch=row_branch or _new_branch(repository, archive, head.commit),
        )
    own = _new_branch(repository, archive, head.commit)
    if head.commit:
        store.point(repository, f"{_HEADS}{own}", head.commit)
    return Placed(
        head=f"ref: {_HEADS}{own}\n",
        branch=own if short == archive.branch or not row_branch else row_branch,
        note=f"{problem}, so that the worktree is on the new branch {own}, at the commit that it had",
    )


def _had_elsewhere(short: str) -> str:
    return f"another worktree has the branch {_shown(short)}"


def _back_again(repository: Repository, back: Head) -> str:
    """See that the branch is there; "", or what is not as before."""
    problem = (
        _had_elsewhere(back.branch.removeprefix(_HEADS))
        if _is_in_use(repository, back.branch)
        else _taken_up(repository, back)
    )
    return f"{problem}, and what is in progress comes back to it" if problem else ""


def _taken_up(repository: Repository, head: Head) -> str:
    """Have the branch be at the commit; "" where it is, or why it can't be."""
    now = repository.commit_of(head.branch)
    if (now or "") == head.commit:
        return ""
    short = _shown(head.branch.removeprefix(_HEADS))
    if now is not None:
        return f"its branch {short} is at another commit by now"
    try:
        # Only where it does not exist: whoever makes it first has it.
        repository.run(["update-ref", "--", head.branch, head.commit, "0" * 40])
    except GitFailed:
        return f"its branch {short} is gone and cannot be made again"
    return ""


def _new_branch(repository: Repository, archive: WorktreeArchive, commit: str) -> str:
    """A name for a branch at the commit, that no other worktree has."""
    plain = f"acw/restored-{archive.worktree_id}"
    names = [plain, *(f"{plain}-{n}" for n in range(2, 1000))]
    return next(
        name
        for name in names
        if not _rows(archive, name)
        and not _is_in_use(repository, f"{_HEADS}{name}")
        and (repository.commit_of(f"{_HEADS}{name}") or commit) == commit
    )


def _rows(archive: WorktreeArchive, branch: str) -> bool:
    """Whether another worktree of the workspace has the branch."""
    rows = Worktree.objects.filter(workspace=archive.workspace, branch=branch)
    return rows.exclude(pk=archive.worktree_id).exists()


def _is_in_use(repository: Repository, branch: str) -> bool:
    """Whether git has a worktree that is on the branch, or comes back to it."""
    directory = repository.path / "worktrees"
    wanted = {
        text.encode(errors="surrogateescape")
        for text in (branch, f"ref: {branch}", branch.removeprefix(_HEADS))
    }
    return any(
        not wanted.isdisjoint(_notes(admin))
        for admin in (directory.iterdir() if directory.is_dir() else ())
        if admin.is_dir() and not admin.is_symlink()
    )


def _notes(admin: Path) -> set[bytes]:
    """What they say; one that is no file says nothing, whoever's worktree it is."""
    said = {
        (worktrees.read_regular(admin / os.fsdecode(note), most=_NOTE_MOST) or b"")
        for note in _NOTES
    }
    with contextlib.suppress(OSError):  # as git once wrote it
        said.add(os.fsencode(os.readlink(admin / "HEAD")))
    return {note.strip() for note in said}


def _shown(branch: str) -> str:
    return presentable.value(branch)


def of_facts(facts: dict[str, Any]) -> Head:
    """Where the archive's HEAD was."""
    return Head(facts["branch"], facts["commit"])


def back_of_facts(facts: dict[str, Any]) -> Head:
    """The branch that it came back to; without one where the archive says none."""
    return of_facts(facts["comes_back_to"]) if "comes_back_to" in facts else _NO_BRANCH
