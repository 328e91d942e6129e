"""What this app tells people and receivers; each goes to the owner, or to every admin where there is none."""

from __future__ import annotations

from typing import Any

from notify.links import admin_page
from notify.topics import define
from workspaces.models import Workspace, Worktree

SYNC_FAILED = define(
    "workspace.sync_failed",
    title="Workspace cannot be fetched",
    description="git fetch fails for a workspace that was well before: at once where somebody has to change something, after "
    "two times in a row where the remote cannot be reached. Told once, until it works or fails in another way.",
)
SYNC_RECOVERED = define(
    "workspace.sync_recovered",
    title="Workspace is fetched again",
    description="git fetch succeeded for a workspace whose failing was told.",
)
DEFAULT_BRANCH_CHANGED = define(
    "workspace.default_branch_changed",
    title="Default branch has changed",
    description="The remote of a workspace has renamed or removed its default branch. New branches begin at the new one.",
)
CLONE_FAILED = define(
    "workspace.clone_failed",
    title="Workspace could not be cloned",
    description="A workspace that was asked for cannot be cloned, and is not tried again.",
)
CONFIG_TAMPERED = define(
    "workspace.config_tampered",
    title="Clone's configuration was changed",
    description="A clone's configuration has keys that could run commands or lead git elsewhere. Nothing works on it until "
    "they are gone or approved. Told once, and again when there are more.",
)
CONFIG_CLEARED = define(
    "workspace.config_cleared",
    title="Clone's configuration is well again",
    description="What a clone's configuration had been found with is gone or was approved.",
)
PRUNE_PENDING = define(
    "worktree.prune_pending",
    title="Worktree will be pruned",
    description="A worktree has been idle for so long that it will be removed soon, unless it "
    "is acquired before.",
    subject="worktree_id",
)
PRUNED = define(
    "worktree.pruned",
    title="Worktree was archived and removed",
    description="A worktree was idle for longer than allowed, or its owner asked for it. It can be restored until its archive expires.",
    subject="worktree_id",
)
RESTORED = define(
    "worktree.restored",
    title="Worktree was restored",
    description="A worktree that was removed is there again, from its archive. Says what is not as before.",
    subject="worktree_id",
)
PRUNE_BLOCKED = define(
    "worktree.prune_blocked",
    title="Worktree is kept: it cannot be archived",
    description="A worktree is past its time and was not removed, because it cannot be archived or somebody works in it. Told "
    "again only when the reason changes.",
    subject="worktree_id",
)
OVER_QUOTA = define(
    "workspace.over_quota",
    title="Workspace takes more than its limit",
    description="A workspace with its worktrees and archives has come to take more than ACW_WORKSPACE_SOFT_LIMIT. Told once, "
    "until it has been below again. Nothing is deleted for space.",
)
RECONCILED = define(
    "workspace.reconciled",
    title="Something of a workspace was missing or unknown",
    description="Reconciliation found worktrees that are gone from the disk, or directories that no worktree has, which it "
    "put aside. Nothing was deleted.",
)
RECONCILE_STOPPED = define(
    "workspace.reconcile_stopped",
    title="Reconciliation has stopped itself",
    description="So much is missing on a host at once that its disk may not be mounted, or this be another database. Nothing "
    "is changed there until that is mended. Goes to every admin, once.",
)
MAINTENANCE_FAILED = define(
    "workspace.maintenance_failed",
    title="Workspace's clone could not be maintained",
    description="The nightly maintenance of a clone has begun to fail, or found that objects are missing. Told once, until it "
    "has worked again.",
)

LEASE_EXPIRED = define(
    "worktree.lease_expired",
    title="Worktree was let go of",
    description="The lease of whoever held a worktree ran out, and nothing showed that it is still "
    "worked in. Its files stay.",
)

ATTACHMENT_MISSING = define(
    "attachment.missing",
    title="Attachments have lost their bytes",
    description="Attachments are recorded whose bytes are not where they were stored. Told to every admin, once for "
    "each attachment.",
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


def about_workspace(workspace: Workspace) -> dict[str, Any]:
    """What the data of every event about fetching a workspace and about its configuration says of it."""
    return {
        "url": admin_page(workspace),
        "workspace_id": workspace.pk,
        "workspace": workspace.name,
        "host": workspace.host,
    }
