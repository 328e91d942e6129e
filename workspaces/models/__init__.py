"""The tables of this app, as ``docs/operations.md`` names them."""

from __future__ import annotations

from workspaces.models.archive import LedgerEntry, WorktreeArchive
from workspaces.models.conversation import Attachment, Conversation
from workspaces.models.host import WorkspaceHost
from workspaces.models.workspace import Workspace, Worktree

__all__ = [
    "Attachment",
    "Conversation",
    "LedgerEntry",
    "Workspace",
    "WorkspaceHost",
    "Worktree",
    "WorktreeArchive",
]
