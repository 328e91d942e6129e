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

    WORKTREE_CREATED = "worktree.created"
    WORKTREE_ACQUIRED = "worktree.acquired"
    WORKTREE_RELEASED = "worktree.released"
    WORKTREE_WARNED = "worktree.warned"
    WORKTREE_PRUNED = "worktree.pruned"
    WORKTREE_PRUNE_BLOCKED = "worktree.prune_blocked"
    WORKTREE_DISCARDED = "worktree.discarded"

    ATTACHMENT_REMOVED = "attachment.removed"
    ATTACHMENT_FILE_REMOVED = "attachment.file_removed"
    ATTACHMENT_FAILED = "attachment.failed"
