"""The ledger of what was done to worktrees' directories: rows are only ever added, and name things by value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workspaces import hosts
from workspaces.models import LedgerEntry, Worktree, WorktreeArchive
from workspaces.models.archive import ACTOR_MAX_LENGTH


def record(
    action: LedgerEntry.Action,
    *,
    actor: str,
    workspace: str = "",
    worktree: Worktree | None = None,
    archive: WorktreeArchive | None = None,
    verified: str = "",
    data: Mapping[str, Any] | None = None,
) -> LedgerEntry:
    """Write that ``actor`` did this, in the caller's transaction.

    ``worktree`` or ``archive`` say to what; ``workspace``, its name, is needed only where there is neither. ``verified`` is what
    the verifier found before.
    """
    of = worktree or archive
    named = {} if of is None else {"branch": of.branch, "path": of.path}
    worktree_id = None
    if worktree is not None:
        worktree_id = worktree.pk
    elif archive is not None:
        worktree_id = archive.worktree_id
    kept = {}
    if archive is not None:
        kept = {
            "archive_id": archive.pk,
            "commit_sha": archive.commit_sha,
            "manifest_digest": archive.manifest_digest,
        }
    return LedgerEntry.objects.create(
        action=action,
        actor=actor[:ACTOR_MAX_LENGTH],
        host=hosts.this_host(),
        workspace=workspace if of is None else of.workspace.name,
        worktree_id=worktree_id,
        verified=verified,
        data=dict(data or {}),
        **named,
        **kept,
    )
