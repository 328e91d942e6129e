"""Which archive a worktree that is gone can be restored from."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet

from workspaces.exceptions import ArchiveExpired, UnknownArchive, UnknownWorktree
from workspaces.models import Workspace, Worktree, WorktreeArchive

_RESTORABLE = (WorktreeArchive.State.VERIFIED, WorktreeArchive.State.RESTORED)


def restorable() -> QuerySet[WorktreeArchive]:
    """Those that are whole and not expired, newest first."""
    return WorktreeArchive.objects.select_related("workspace__owner").filter(
        state__in=_RESTORABLE
    )


def latest(worktree_id: int) -> WorktreeArchive | None:
    """The newest archive of this worktree that it can be restored from, whether or not its row is gone."""
    return restorable().filter(worktree_id=worktree_id).first()


def of_branch(workspace: Workspace, branch: str) -> WorktreeArchive | None:
    """The newest one of a worktree of this branch whose row is gone."""
    return _gone(workspace).filter(branch=branch).first()


def of_holder(workspace: Workspace, holder: str) -> WorktreeArchive | None:
    """The newest one of a worktree that this holder had last and whose row is gone."""
    return _gone(workspace).filter(last_held_by=holder).first()


def required(worktree_id: int) -> WorktreeArchive:
    """Like :func:`latest`; raises :class:`~workspaces.exceptions.ArchiveExpired` or ``UnknownArchive`` where there is none."""
    found = latest(worktree_id)
    if found is not None:
        return found
    expired = WorktreeArchive.objects.filter(
        worktree_id=worktree_id, state=WorktreeArchive.State.EXPIRED
    ).first()
    if expired is not None:
        raise ArchiveExpired(
            f"the archive of worktree {worktree_id} was removed after its retention"
            f" (ACW_ARCHIVE_RETENTION), at {expired.expires_at:%Y-%m-%d %H:%M %Z}; its branch"
            f" {expired.branch!r} may still be in the clone"
        )
    raise UnknownArchive(
        f"there is no archive of worktree {worktree_id}; `worktree archives` shows those there are"
    )


def unknown(worktree_id: int) -> UnknownWorktree:
    """The error that says that there is no such worktree, and how it comes back where it was pruned."""
    again = (
        f": it was pruned, and `worktree restore {worktree_id}` brings it back"
        if latest(worktree_id) is not None
        else "; `worktree list` shows those there are"
    )
    return UnknownWorktree(f"there is no worktree {worktree_id}{again}")


def _gone(workspace: Workspace) -> QuerySet[WorktreeArchive]:
    """Of this workspace, without those of worktrees that there are and those that were restored since."""
    rows = Worktree.objects.filter(pk=OuterRef("worktree_id"))
    return (
        restorable()
        .filter(workspace=workspace, state=WorktreeArchive.State.VERIFIED)
        .exclude(Exists(rows))
    )
