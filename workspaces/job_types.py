"""The jobs of this app: their names and payloads, and how one is asked for.

Each goes to the queue of the host that has the disk, and is there once at a time.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from hashlib import sha256

from jobs.enqueue import NewJob
from jobs.models import Priority
from workspaces import hosts, remotes
from workspaces.models import Workspace, Worktree, WorktreeArchive

FETCH = "workspace.fetch"
PRUNE = "worktree.prune"
CLEAN_UP = "attachment.cleanup"
CLONE = "workspace.clone"
RECONCILE = "workspace.reconcile"
MAINTAIN = "workspace.maintain"
ARCHIVE = "worktree.archive"
RESTORE = "worktree.restore"

OF_WORKTREES = (PRUNE, ARCHIVE, RESTORE)
"""Those whose ``ref_id`` is a worktree's ID."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchPayload:
    workspace_id: int
    # With the others of its remote, and not where that has been done since.
    when_due: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PrunePayload:
    worktree_id: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchivePayload:
    worktree_id: int
    actor: str
    # See as_of(); "": however it is by then.
    as_of: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanUpPayload:
    host: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RestorePayload:
    worktree_id: int
    actor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReconcilePayload:
    host: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MaintainPayload:
    workspace_id: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ClonePayload:
    workspace_id: int


def fetch(workspace: Workspace, *, priority: Priority | None = None) -> NewJob:
    """A fetch of the workspace, due or not."""
    return _about(
        FETCH,
        workspace.pk,
        FetchPayload(workspace_id=workspace.pk),
        host=workspace.host,
        priority=priority,
    )


def fetch_when_due(
    workspace: Workspace, *, run_at: dt.datetime | None = None
) -> NewJob:
    """A fetch of all workspaces of this one's remote and host that are due then; where the remote is a path, of this one."""
    remote = f"{workspace.host}\n{workspace.url}"
    if remotes.is_path(workspace.url):
        remote += f"\n{workspace.pk}"
    return NewJob(
        type=FETCH,
        payload=FetchPayload(workspace_id=workspace.pk, when_due=True),
        ref_id=str(workspace.pk),
        unique_key=f"{FETCH}:remote:{sha256(remote.encode()).hexdigest()}",
        queue=hosts.queue_of(workspace.host),
        run_at=run_at,
    )


def clone(workspace: Workspace) -> NewJob:
    """The making of the workspace's clone."""
    return _about(
        CLONE,
        workspace.pk,
        ClonePayload(workspace_id=workspace.pk),
        host=workspace.host,
    )


def prune(worktree: Worktree) -> NewJob:
    """A look at whether the worktree is to be warned of or pruned, and that."""
    return _about(
        PRUNE,
        worktree.pk,
        PrunePayload(worktree_id=worktree.pk),
        host=worktree.workspace.host,
    )


def archive(worktree: Worktree, *, actor: str) -> NewJob:
    """The archiving and removal of the worktree as it is now, which ``actor`` asked for."""
    now = as_of(worktree)
    return _about(
        ARCHIVE,
        worktree.pk,
        ArchivePayload(worktree_id=worktree.pk, actor=actor, as_of=now),
        host=worktree.workspace.host,
        priority=Priority.HIGH,
        # Who asks again after somebody kept it is not put off with the job that has nothing to do any more.
        suffix=f":{sha256(now.encode()).hexdigest()[:16]}",
    )


def as_of(worktree: Worktree) -> str:
    """What is another after the worktree was held, kept or restored."""
    kept = worktree.kept_until
    until = "" if kept is None else kept.isoformat()
    return f"{worktree.fencing_no} {until} {worktree.created_at.isoformat()}"


def clean_up(host: str) -> NewJob:
    """A cleanup of the attachments on the host's disk; ``""``: of a storage that every host reaches."""
    return NewJob(
        type=CLEAN_UP,
        payload=CleanUpPayload(host=host),
        # A host's name may be longer than a key.
        unique_key=f"{CLEAN_UP}:{sha256(host.encode()).hexdigest()}",
        queue=hosts.queue_of(host) if host else None,
    )


def reconcile(host: str) -> NewJob:
    """A comparison of the host's rows with its disk."""
    return NewJob(
        type=RECONCILE,
        payload=ReconcilePayload(host=host),
        # A host's name may be longer than a key.
        unique_key=f"{RECONCILE}:{sha256(host.encode()).hexdigest()}",
        queue=hosts.queue_of(host),
    )


def maintain(workspace: Workspace, *, run_at: dt.datetime | None = None) -> NewJob:
    """The upkeep of the workspace's clone."""
    return _about(
        MAINTAIN,
        workspace.pk,
        MaintainPayload(workspace_id=workspace.pk),
        host=workspace.host,
        run_at=run_at,
    )


def restore(archived: WorktreeArchive, *, actor: str) -> NewJob:
    """The restoring of the archived worktree, which ``actor`` asked for."""
    return _about(
        RESTORE,
        archived.worktree_id,
        RestorePayload(worktree_id=archived.worktree_id, actor=actor),
        host=archived.workspace.host,
        priority=Priority.HIGH,
    )


def _about(
    type_name: str,
    key: int,
    payload: object,
    *,
    host: str,
    priority: Priority | None = None,
    run_at: dt.datetime | None = None,
    suffix: str = "",
) -> NewJob:
    """A job about one row, there once at a time, for the host that has its disk."""
    return NewJob(
        type=type_name,
        payload=payload,
        ref_id=str(key),
        unique_key=f"{type_name}:{key}{suffix}",
        queue=hosts.queue_of(host),
        priority=priority,
        run_at=run_at,
    )
