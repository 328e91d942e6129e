"""Warning of worktrees that will be pruned soon: rows and notifications, no disk."""

from __future__ import annotations

import logging
import threading

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from notify.dispatch import Event, dispatch
from notify.recipients import owner_or_admins
from workspaces import topics
from workspaces.events import LogEvent
from workspaces.models import Worktree

log = logging.getLogger(__name__)

_BATCH = 100


def warn_idle(stop: threading.Event) -> int:
    """Tell the owner of each worktree that is due for it, once, and return how many.

    The mark and the notification are written together, so that neither is there without the other.
    """
    warned = 0
    while not stop.is_set():
        with transaction.atomic():
            batch = _due()
            Worktree.objects.filter(pk__in=[worktree.pk for worktree in batch]).update(
                prune_warning_at=Now()
            )
            for worktree in batch:
                dispatch(_event(worktree))
        for worktree in batch:
            log.info(LogEvent.WORKTREE_WARNED, extra=_facts(worktree))
        warned += len(batch)
        if len(batch) < _BATCH:
            break
    return warned


def _due() -> list[Worktree]:
    due = Worktree.objects.due_for_warning(
        threshold=settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD,
        lead=settings.JOBS_WORKTREE_PRUNE_WARNING_LEAD,
    )
    # One that is being acquired at this moment is not idle.
    locked = due.select_for_update(skip_locked=True, of=("self",))
    return list(locked.select_related("workspace__owner").order_by("pk")[:_BATCH])


def _facts(worktree: Worktree) -> dict[str, object]:
    return {
        "worktree_id": worktree.pk,
        "workspace": worktree.workspace.name,
        "branch": worktree.branch,
    }


def _event(worktree: Worktree) -> Event:
    workspace = worktree.workspace
    at = worktree.last_used_at + settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD
    return Event(
        topic=topics.PRUNE_PENDING.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Worktree {worktree.branch} of {workspace.name} will be removed after {at:%Y-%m-%d %H:%M %Z}",
        body=(
            f"Nobody has used it since {worktree.last_used_at:%Y-%m-%d %H:%M %Z}. Acquire and release "
            f"it to keep it. It is in {worktree.path} on {workspace.host}.\n\nIts branch stays, and "
            "work that is not committed or not pushed keeps it from being removed."
        ),
        data={
            **topics.about(worktree),
            "last_used_at": worktree.last_used_at.isoformat(),
            "prune_after": at.isoformat(),
        },
    )
