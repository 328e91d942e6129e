"""When a worktree will be pruned, as lists and pages say it; what is decided is decided in SQL."""

from __future__ import annotations

import datetime as dt

from django.conf import settings

from workspaces.models import Worktree
from workspaces.querysets import PRUNABLE_STATES


def pruned_after(
    worktree: Worktree, *, now: dt.datetime | None = None
) -> dt.datetime | None:
    """The time after which the next ``worktree_prune`` removes it, unless it is used before; None: none does.

    It may be over: the runner looks once a day. Where a warning is required and there was none, it is reckoned as if it came at
    the database's ``now``.
    """
    if (
        worktree.held_by is not None
        or worktree.pinned
        or worktree.state not in PRUNABLE_STATES
    ):
        return None
    at = worktree.last_used_at + settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD
    if worktree.kept_until is not None:
        at = max(at, worktree.kept_until)
    warned = worktree.prune_warning_at or now
    if settings.JOBS_WORKTREE_PRUNE_REQUIRE_WARNING and warned:
        at = max(at, warned + settings.JOBS_WORKTREE_PRUNE_WARNING_LEAD)
    return at


def idle_for(worktree: Worktree, *, now: dt.datetime) -> dt.timedelta | None:
    """How long nobody has used it, by the database's ``now``; None while it is held."""
    return None if worktree.held_by is not None else now - worktree.last_used_at
