"""Acquiring worktrees, keeping them and letting them go: what embedders, commands and tasks call.

A held worktree is its holder's alone and is never pruned. A hold is a lease: it ends when it is released, or when
``lease_expires_at`` is over and nothing shows that the worktree is still worked in. Its ``fencing_no`` tells it from every
other hold of the same worktree. Acquiring and releasing count as use: they set ``last_used_at`` and take back a warning.
"""

from __future__ import annotations

from workspaces.holding.acquiring import acquire, acquire_again
from workspaces.holding.checkouts import discard_interrupted
from workspaces.holding.expiry import end_expired
from workspaces.holding.leases import (
    UNTIL_RELEASED,
    heartbeat,
    keep_alive,
    let_go,
    pass_on,
    release,
    release_once,
)

__all__ = [
    "UNTIL_RELEASED",
    "acquire",
    "acquire_again",
    "discard_interrupted",
    "end_expired",
    "heartbeat",
    "keep_alive",
    "let_go",
    "pass_on",
    "release",
    "release_once",
]
