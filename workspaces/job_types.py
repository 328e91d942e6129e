"""The jobs of this app: their names and payloads, and how one is asked for.

Each goes to the queue of the host that has the disk, and is there once at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from jobs.enqueue import NewJob
from jobs.models import Priority
from workspaces import hosts
from workspaces.models import Workspace, Worktree

FETCH = "workspace.fetch"
PRUNE = "worktree.prune"
CLEAN_UP = "attachment.cleanup"
CLONE = "workspace.clone"
RECONCILE = "workspace.reconcile"
MAINTAIN = "workspace.maintain"
ARCHIVE = "worktree.archive"
RESTORE = "worktree.restore"


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchPayload:
    workspace_id: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PrunePayload:
    worktree_id: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanUpPayload:
    host: str


def fetch(workspace: Workspace, *, priority: Priority | None = None) -> NewJob:
    """A fetch of the workspace."""
    return NewJob(
        type=FETCH,
        payload=FetchPayload(workspace_id=workspace.pk),
        ref_id=str(workspace.pk),
        unique_key=f"{FETCH}:{workspace.pk}",
        queue=hosts.queue_of(workspace.host),
        priority=priority,
    )


def prune(worktree: Worktree) -> NewJob:
    """A look at whether the worktree is to be pruned, and the pruning."""
    return NewJob(
        type=PRUNE,
        payload=PrunePayload(worktree_id=worktree.pk),
        ref_id=str(worktree.pk),
        unique_key=f"{PRUNE}:{worktree.pk}",
        queue=hosts.queue_of(worktree.workspace.host),
    )


def clean_up(host: str) -> NewJob:
    """A cleanup of the attachments on the host's disk."""
    return NewJob(
        type=CLEAN_UP,
        payload=CleanUpPayload(host=host),
        # A host's name may be longer than a key.
        unique_key=f"{CLEAN_UP}:{sha256(host.encode()).hexdigest()}",
        queue=hosts.queue_of(host),
    )
