"""What people decide about a worktree that would be pruned: keep it for a while, pin it, or have it archived now.

Each is audited, and takes back a warning.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.db import transaction
from django.db.models.functions import Greatest, Now

from jobs.enqueue import enqueue_many
from notify import audit
from workspaces import job_types, prune
from workspaces.exceptions import WorktreeBusy
from workspaces.holding import leases
from workspaces.models import Worktree

KEEP_FOR = dt.timedelta(days=30)


def keep(
    worktree_id: int, *, actor: str, duration: dt.timedelta = KEEP_FOR
) -> Worktree:
    """Have it not pruned for ``duration`` from now on, or longer where that was so already; return its row.

    Raises :class:`~workspaces.exceptions.UnknownWorktree`, ``WorktreeBusy`` where it is being pruned at this moment, and
    ``InvalidLease`` for a duration that is not above 0 and at most ten years.
    """
    leases.check_duration("keeping for", duration)
    until = Greatest("kept_until", Now() + duration)
    return _change(
        worktree_id,
        "worktree.keep",
        actor=actor,
        data={"days": duration / dt.timedelta(days=1)},
        kept_until=until,
    )


def pin(worktree_id: int, *, actor: str) -> Worktree:
    """Have it not pruned until it is unpinned; return its row. Raises like :func:`keep`."""
    return _change(worktree_id, "worktree.pin", actor=actor, pinned=True)


def unpin(worktree_id: int, *, actor: str) -> Worktree:
    """Have it pruned like any other again; return its row. Raises like :func:`keep`.

    What was idle meanwhile is idle: where it is past its time, the next run prunes it.
    """
    return _change(worktree_id, "worktree.unpin", actor=actor, pinned=False)


def archive_now(worktree_id: int, *, actor: str) -> Worktree:
    """Have a worktree that nobody holds archived and removed by a worker of its host; return its row.

    It is not where somebody acquires, keeps or pins it before. Raises :class:`~workspaces.exceptions.UnknownWorktree`, and ``WorktreeError`` where it is held, pinned or being worked on.
    """
    with transaction.atomic():
        worktree = leases.find(worktree_id)
        prune.refuse(worktree, worktree_id)
        enqueue_many([job_types.archive(worktree, actor=actor)])
        _record(actor, "worktree.archive", worktree)
    return worktree


def _change(
    worktree_id: int,
    action: str,
    *,
    actor: str,
    data: dict[str, Any] | None = None,
    **changes: Any,
) -> Worktree:
    with transaction.atomic():
        rows = Worktree.objects.filter(pk=worktree_id).exclude(
            state=Worktree.State.PRUNING
        )
        changed = rows.update(**leases.UNWARNED, **changes)
        worktree = leases.find(worktree_id)
        if not changed:
            raise WorktreeBusy(
                f"{worktree} is being pruned at this moment; acquire it, or restore it afterwards"
            )
        _record(actor, action, worktree, data)
    return worktree


def _record(
    actor: str, action: str, worktree: Worktree, data: dict[str, Any] | None = None
) -> None:
    audit.record(
        actor,
        action,
        target=f"worktree:{worktree.pk}",
        data={
            "workspace": worktree.workspace.name,
            "branch": worktree.branch,
            **(data or {}),
        },
    )
