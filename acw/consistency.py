"""Settings that are good each and cannot hold together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured

_SHORTER = (("JOBS_WORKTREE_PRUNE_WARNING_LEAD", "JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD"),)
_NOT_LARGER = (("ACW_WORKSPACE_SOFT_LIMIT", "ACW_WORKSPACE_HARD_LIMIT"),)
"""Where 0 is no limit."""

_NOT_LONGER = (
    ("JOBS_BACKOFF_BASE", "JOBS_BACKOFF_MAX"),
    ("NOTIFY_WEBHOOK_BREAKER_WAIT", "NOTIFY_WEBHOOK_BREAKER_MAX_WAIT"),
)


def check(settings: Mapping[str, Any]) -> None:
    """Raise ImproperlyConfigured, which names both settings and their values."""
    for one, other in _SHORTER:
        if settings[one] >= settings[other]:
            raise _refused(settings, one, other, "shorter than")
    for one, other in _NOT_LONGER:
        if settings[one] > settings[other]:
            raise _refused(settings, one, other, "no longer than")
    for one, other in _NOT_LARGER:
        if settings[other] and settings[one] > settings[other]:
            raise _refused(settings, one, other, "no larger than")


def _refused(
    settings: Mapping[str, Any], one: str, other: str, rule: str
) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"{one} ({settings[one]}) must be {rule} {other} ({settings[other]})"
    )
