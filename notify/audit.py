"""The record of who did what: one row for each, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from notify.models.audit import (
    ACTION_MAX_LENGTH,
    ACTOR_MAX_LENGTH,
    TARGET_MAX_LENGTH,
    AuditEntry,
)

SYSTEM = "system"
"""The actor where no person acted."""


def record(
    actor: str, action: str, *, target: str, data: Mapping[str, Any] | None = None
) -> AuditEntry:
    """Write that ``actor`` (a user's name, or :data:`SYSTEM`) did ``action`` to ``target``, e.g. ``job:<id>``."""
    return AuditEntry.objects.create(
        actor=actor[:ACTOR_MAX_LENGTH],
        action=action[:ACTION_MAX_LENGTH],
        target=target[:TARGET_MAX_LENGTH],
        data=dict(data or {}),
    )
