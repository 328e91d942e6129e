"""The names of this app's log events.

They are public: operators search and alert on them, so they stay as written. Each is the
message of one log record, with its facts in ``extra``; ``docs/operations.md`` lists them.
"""

from __future__ import annotations

from enum import StrEnum


class LogEvent(StrEnum):
    """One member for each thing that can happen to a workspace, a worktree or an attachment."""

    WORKSPACE_ADDED = "workspace.added"
    WORKSPACE_REMOVED = "workspace.removed"
    WORKSPACE_FETCHED = "workspace.fetched"
    WORKSPACE_FETCH_FAILED = "workspace.fetch_failed"
    WORKSPACE_RECOVERED = "workspace.recovered"
    WORKSPACE_CONFIG_TAMPERED = "workspace.config_tampered"
    WORKSPACE_CONFIG_CLEARED = "workspace.config_cleared"
    WORKSPACE_HEALED = "workspace.healed"
    WORKSPACE_LOCK_REMOVED = "workspace.lock_removed"
    WORKSPACE_CLONE_FAILED = "workspace.clone_failed"
    WORKSPACE_MAINTAINED = "workspace.maintained"
    WORKSPACE_MAINTENANCE_FAILED = "workspace.maintenance_failed"
    WORKSPACE_OVER_QUOTA = "workspace.over_quota"
    WORKSPACE_CLONE_MISSING = "workspace.clone_missing"
    RECONCILE_PASSED = "workspace.reconcile_passed"
    RECONCILE_STOPPED = "workspace.reconcile_stopped"

    WORKTREE_CREATED = "worktree.created"
    WORKTREE_ACQUIRED = "worktree.acquired"
    WORKTREE_RELEASED = "worktree.released"
    WORKTREE_LEASE_EXPIRED = "worktree.lease_expired"
    WORKTREE_LEASE_EXTENDED = "worktree.lease_extended"
    WORKTREE_NOT_RESTORED = "worktree.not_restored"
    WORKTREE_WARNED = "worktree.warned"
    WORKTREE_USED = "worktree.used"
    WORKTREE_RESTORED = "worktree.restored"
    WORKTREE_ARCHIVE_EXPIRED = "worktree.archive_expired"
    WORKTREE_ARCHIVE_MENDED = "worktree.archive_mended"
    WORKTREE_PRUNED = "worktree.pruned"
    WORKTREE_PRUNE_BLOCKED = "worktree.prune_blocked"
    WORKTREE_DISCARDED = "worktree.discarded"
    WORKTREE_MISSING = "worktree.missing"
    WORKTREE_QUARANTINED = "worktree.quarantined"
    WORKTREE_MENDED = "worktree.mended"
    WORKTREE_MEND_FAILED = "worktree.mend_failed"
    WORKTREE_PUT_ASIDE = "worktree.put_aside"

    ATTACHMENT_REMOVED = "attachment.removed"
    ATTACHMENT_FILE_REMOVED = "attachment.file_removed"
    ATTACHMENT_FAILED = "attachment.failed"
    ATTACHMENT_MISSING = "attachment.missing"
    ATTACHMENT_FOUND = "attachment.found"
    ATTACHMENT_UNSWEPT = "attachment.unswept"
