"""Which worktree somebody wants, the rows and archives that would do, and why it cannot be had."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from workspaces.archiving import lookup
from workspaces.exceptions import WorktreeBusy, WorktreeQuarantined
from workspaces.holding import expiry, leases
from workspaces.models import Workspace, Worktree, WorktreeArchive
from workspaces.querysets import WorktreeQuerySet


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Which worktree, by at most one of ``branch`` and ``worktree_id``, and for whom."""

    workspace: Workspace
    holder: str
    lease: dt.timedelta | None
    branch: str | None = None
    worktree_id: int | None = None

    @property
    def is_one(self) -> bool:
        """Whether one certain worktree is wanted, and no other will do."""
        return self.branch is not None or self.worktree_id is not None

    def rows(self) -> WorktreeQuerySet:
        """Those that would do."""
        rows = Worktree.objects.filter(workspace=self.workspace)
        if self.worktree_id is not None:
            return rows.filter(pk=self.worktree_id)
        if self.branch is not None:
            return rows.filter(branch=self.branch)
        return rows.filter(last_held_by=self.holder)

    def archive(self) -> WorktreeArchive | None:
        """That of one that would do."""
        if self.worktree_id is not None:
            return lookup.required(self.worktree_id)
        if self.branch is not None:
            return lookup.of_branch(self.workspace, self.branch)
        return lookup.of_holder(self.workspace, self.holder)

    def take(self) -> Worktree | None:
        """Hold one that nobody holds, or that was held for longer than its lease."""
        taken = leases.take(self.rows(), holder=self.holder, lease=self.lease)
        if taken is None and expiry.end_among(self.rows()):
            return leases.take(self.rows(), holder=self.holder, lease=self.lease)
        return taken

    def refuse(self, *, unfinished: bool) -> None:
        """Raise why the one that is wanted cannot be had; ``unfinished``: also where it is being worked on."""
        row = self.rows().select_related("workspace").first() if self.is_one else None
        if row is None:
            return
        leases.refuse_held(row)
        if row.state == Worktree.State.QUARANTINED:
            raise WorktreeQuarantined(
                f"{row} was taken out of use: {row.state_reason or 'no reason was given'}"
            )
        if unfinished:
            raise WorktreeBusy(f"{row} is being worked on; try again later")
