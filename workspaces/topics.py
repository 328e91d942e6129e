"""What this app tells people and receivers; each goes to the owner, or to every admin where there is none."""

from __future__ import annotations

from typing import Any

from notify.links import admin_page
from notify.topics import define
from workspaces.models import Worktree

SYNC_FAILED = define(
    "workspace.sync_failed",
    title="Workspace cannot be fetched",
    description="git fetch failed for a workspace that was well before. Told once, when it "
    "turns from well to failing.",
)
SYNC_RECOVERED = define(
    "workspace.sync_recovered",
    title="Workspace is fetched again",
    description="git fetch succeeded for a workspace that was failing.",
)
PRUNE_PENDING = define(
    "worktree.prune_pending",
    title="Worktree will be pruned",
    description="A worktree has been idle for so long that it will be removed soon, unless it "
    "is acquired before.",
    subject="worktree_id",
)
PRUNE_BLOCKED = define(
    "worktree.prune_blocked",
    title="Worktree is kept: it has work that is nowhere else",
    description="A worktree is past its time and was not removed, because of changes that are "
    "not committed or commits that are not pushed. Told again only when these change.",
)


def about(worktree: Worktree) -> dict[str, Any]:
    """What the data of every event about a worktree says of it."""
    workspace = worktree.workspace
    return {
        "url": admin_page(worktree),
        "workspace_id": workspace.pk,
        "workspace": workspace.name,
        "worktree_id": worktree.pk,
        "branch": worktree.branch,
        "path": worktree.path,
    }
