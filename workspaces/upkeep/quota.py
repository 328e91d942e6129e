"""The limits of what a workspace may take: a soft one is told, a hard one refuses; nothing is deleted for space."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from notify.dispatch import Event, dispatch
from notify.links import admin_page
from notify.recipients import owner_or_admins
from workspaces import paths, topics
from workspaces.exceptions import OutsideDataDirectory, QuotaExceeded
from workspaces.models import Workspace, Worktree
from workspaces.repository import Stop
from workspaces.upkeep import sizes
from workspaces.upkeep.sizes import in_words

_NAMED = 5
_LOOK = dt.timedelta(seconds=10)


def check(workspace: Workspace) -> None:
    """Raise :class:`~workspaces.exceptions.QuotaExceeded` where it took more than ``ACW_WORKSPACE_HARD_LIMIT`` when last sampled.

    What was never sampled is let through.
    """
    limit = settings.ACW_WORKSPACE_HARD_LIMIT
    if not limit:
        return
    rows = Workspace.objects.filter(pk=workspace.pk)
    taken = rows.values_list("size_bytes", flat=True).first()
    if taken is not None and taken > limit:
        raise QuotaExceeded(
            f"workspace {workspace.name} takes {in_words(taken)}, more than the {in_words(limit)} of ACW_WORKSPACE_HARD_LIMIT: "
            "delete what is not needed in its worktrees (`worktree list` says how large each is), have idle ones archived"
            " (`worktree archive ID`), or raise the limit. Nothing is deleted for space; sizes are sampled by"
            " workspace_reconcile, at once by `runners run workspace_reconcile`"
        )


def tell(workspace_id: int, *, stop: Stop | None = None) -> bool:
    """Tell its owner where it has come to take more than ``ACW_WORKSPACE_SOFT_LIMIT``, once each time; whether it was told."""
    limit = settings.ACW_WORKSPACE_SOFT_LIMIT
    rows = Workspace.objects.filter(pk=workspace_id)
    if not limit:
        return False
    rows.filter(size_bytes__lte=limit).update(quota_told_at=None)
    over = rows.filter(size_bytes__gt=limit, quota_told_at=None)
    if not over.exists():
        return False
    largest = _largest(workspace_id, stop=stop)
    with transaction.atomic():
        locked = over.select_for_update(of=("self",)).select_related("owner")
        workspace = locked.first()
        if workspace is None:
            return False
        rows.update(quota_told_at=Now())
        dispatch(_event(workspace, limit, largest))
    return True


@dataclass(frozen=True, kw_only=True, slots=True)
class _Large:
    worktree: Worktree
    size: sizes.Size


def _largest(workspace_id: int, *, stop: Stop | None) -> list[_Large]:
    rows = (
        Worktree.objects.filter(workspace=workspace_id, size_bytes__gt=0)
        .select_related("workspace")
        .order_by(F("size_bytes").desc())[:_NAMED]
    )
    found = []
    for worktree in rows:
        try:
            path = paths.own_worktree_path(worktree)
        except OutsideDataDirectory:
            continue
        size = sizes.measure(path, limit=_LOOK, stop=stop)
        found.append(_Large(worktree=worktree, size=size))
    return found


def _event(workspace: Workspace, limit: int, largest: list[_Large]) -> Event:
    taken = workspace.size_bytes or 0
    lines = [
        f"* {large.worktree.branch}: {in_words(large.size.size_bytes)}, of which {in_words(large.size.recreatable_bytes)}"
        " in directories that tools make again"
        for large in largest
    ]
    worktrees = "\n".join(
        ["Its largest worktrees:", *lines] if lines else ["No worktree is to blame."]
    )
    return Event(
        topic=topics.OVER_QUOTA.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"{workspace.name} takes {in_words(taken)}, more than {in_words(limit)}",
        body=(
            f"That is the clone with its worktrees and archives, on {workspace.host}. Nothing is deleted for space."
            f"\n\n{worktrees}\n\nDelete what is not needed there, such as node_modules, or have worktrees archived that nobody"
            " needs now. You are told again only after it has been below the limit."
        ),
        data={
            "url": admin_page(workspace),
            "workspace_id": workspace.pk,
            "workspace": workspace.name,
            "size_bytes": taken,
            "limit_bytes": limit,
            "recreatable_bytes": sum(large.size.recreatable_bytes for large in largest),
            "worktrees": [
                {
                    "worktree_id": large.worktree.pk,
                    "branch": large.worktree.branch,
                    "size_bytes": large.size.size_bytes,
                    "recreatable_bytes": large.size.recreatable_bytes,
                }
                for large in largest
            ],
        },
    )
