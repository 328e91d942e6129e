"""How this app's tables look in the admin. What is done with them lives elsewhere."""

from __future__ import annotations

from workspaces.admin import (
    archives,
    attachments,
    conversation,
    hosts,
    ledger,
    workspaces,
    worktrees,
)

__all__ = [
    "archives",
    "attachments",
    "conversation",
    "hosts",
    "ledger",
    "workspaces",
    "worktrees",
]
