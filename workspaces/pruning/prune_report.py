"""What is written and told of a worktree that was pruned, is kept, or could not be deleted: rows and notifications, no disk."""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from notify import audit
from notify.dispatch import Event, dispatch
from notify.recipients import owner_or_admins
from workspaces import ledger, topics
from workspaces.events import LogEvent
from workspaces.holding import leases
from workspaces.models import LedgerEntry, Worktree
from workspaces.pruning.clearing import Cleared

log = logging.getLogger(__name__)


def pruned(worktree: Worktree, cleared: Cleared, *, actor: str) -> None:
    """Delete the row of a worktree that is off the disk, and write and tell who did it and what it is in, together."""
    archive = cleared.archive
    with transaction.atomic():
        rows = Worktree.objects.filter(pk=worktree.pk, state=Worktree.State.PRUNING)
        if not rows.delete()[0]:
            return
        ledger.record(
            LedgerEntry.Action.PRUNED,
            actor=actor,
            worktree=worktree,
            archive=archive,
            verified=cleared.verdict,
            data={
                "last_used_at": worktree.last_used_at.isoformat(),
                "fencing_no": worktree.fencing_no,
            },
        )
        audit.record(
            actor,
            LogEvent.WORKTREE_PRUNED,
            target=f"worktree:{worktree.pk}",
            data={
                "workspace": worktree.workspace.name,
                "branch": worktree.branch,
                "path": worktree.path,
                "last_used_at": worktree.last_used_at.isoformat(),
                "archive_id": None if archive is None else archive.pk,
                "manifest_digest": "" if archive is None else archive.manifest_digest,
            },
        )
        dispatch(_pruned_event(worktree, cleared))
    log.info(
        LogEvent.WORKTREE_PRUNED,
        extra={
            **leases.facts(worktree),
            "path": worktree.path,
            "archive_id": None if archive is None else archive.pk,
        },
    )


def blocked(worktree: Worktree, reason: str) -> None:
    """Give it back and say what keeps it, once for each reason."""
    rows = Worktree.objects.filter(pk=worktree.pk, state=Worktree.State.PRUNING)
    with transaction.atomic():
        new = rows.exclude(prune_blocked_reason=reason).update(
            state=Worktree.State.READY,
            state_reason="",
            prune_blocked_at=Now(),
            prune_blocked_reason=reason,
        )
        if new:
            dispatch(_blocked_event(worktree, reason))
        else:
            rows.update(state=Worktree.State.READY, state_reason="")
    if new:
        _log_blocked(worktree, reason)


def not_deleted(worktree: Worktree, cleared: Cleared, error: OSError) -> None:
    """Say that some of it is still on the disk, once; it stays claimed, and the next run goes on."""
    number = "" if cleared.archive is None else f" {cleared.archive.pk}"
    reason = (
        f"all of it is in archive{number}, and not all of it could be deleted:"
        f" {error.strerror or type(error).__name__}"
    )
    rows = Worktree.objects.filter(pk=worktree.pk)
    with transaction.atomic():
        where = f"what is left is below trash/{worktree.pk}.* of the workspace"
        rows.update(state_reason=where)
        new = rows.exclude(prune_blocked_reason=reason).update(
            prune_blocked_at=Now(), prune_blocked_reason=reason
        )
        if new:
            dispatch(_blocked_event(worktree, reason))
    if new:
        _log_blocked(worktree, reason)


def left_over(worktree: Worktree, error: OSError) -> None:
    """Log that some of what is archived is still in the trash, which a later run deletes."""
    _log_blocked(worktree, error.strerror or type(error).__name__)


def _log_blocked(worktree: Worktree, reason: str) -> None:
    log.warning(
        LogEvent.WORKTREE_PRUNE_BLOCKED,
        extra={**leases.facts(worktree), "reason": reason},
    )


def _pruned_event(worktree: Worktree, cleared: Cleared) -> Event:
    workspace, archive = worktree.workspace, cleared.archive
    data: dict[str, Any] = topics.about(worktree)
    if archive is None:
        how = "Nothing of it was left on the disk, so nothing was archived."
    else:
        until = archive.expires_at
        how = (
            f"All of it is in archive {archive.pk}, and can be had again until {until:%Y-%m-%d %H:%M %Z}: with"
            f" `worktree restore {worktree.pk}` on {workspace.host}, or by acquiring it."
        )
        words = archive.contents.get("words", [])
        if words:
            how += f"\n\nIt had: {'; '.join(words)}."
        data |= {
            "archive_id": archive.pk,
            "restorable_until": None if until is None else until.isoformat(),
        }
    return Event(
        topic=topics.PRUNED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Worktree {worktree.branch} of {workspace.name} was archived and removed",
        body=(
            f"It was last used at {worktree.last_used_at:%Y-%m-%d %H:%M %Z}. Its branch stays. {how}"
        ),
        data=data,
    )


def _blocked_event(worktree: Worktree, reason: str) -> Event:
    workspace = worktree.workspace
    return Event(
        topic=topics.PRUNE_BLOCKED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Worktree {worktree.branch} of {workspace.name} is past its time and was kept",
        body=(
            f"It has been idle since {worktree.last_used_at:%Y-%m-%d %H:%M %Z}, and would have been archived and "
            f"removed. What keeps it: {reason}.\n\nIt is in {worktree.path} on {workspace.host}. Once this is gone the next "
            "run removes it; acquire and release it, or keep or pin it, to keep it in use."
        ),
        data={
            **topics.about(worktree),
            "reason": reason,
        },
    )
