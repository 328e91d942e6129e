"""Offers to hand a task over: made, answered, withdrawn, expired. Called with the task's row locked."""

from __future__ import annotations

import datetime as dt

from django.conf import settings

from workspaces.tasks import terms, worktree_use
from workspaces.tasks.change import Change
from workspaces.tasks.models import Task, Transfer
from workspaces.tasks.outcomes import Refused
from workspaces.tasks.states import Reason

State = Transfer.State


def pending(task: Task) -> Transfer | None:
    """The offer that is not answered, with both agents."""
    rows = Transfer.objects.filter(task=task, status=State.PENDING)
    # Mostly there is none, and the joins are what takes long to put together.
    if not rows.exists():
        return None
    return rows.select_related(
        "to_agent__user", "to_agent__owner", "from_agent__user", "from_agent__owner"
    ).first()


def offer(change: Change) -> None:
    """Offer the task to another agent, until the holder's own time ends at the latest."""
    to, until = change.details.to, change.task.hold_until
    if to is None or until is None:
        raise ValueError("a transfer needs an agent to offer it to, and a held task")
    if change.transfer is not None:
        raise Refused(
            Reason.TRANSFER_PENDING,
            f"it is offered to {change.transfer.to_agent} already, until "
            f"{change.transfer.expires_at:%Y-%m-%d %H:%M:%S %Z}; withdraw that first",
        )
    if to.pk == change.task.holder_id or not to.may_act:
        what = "holds it already" if to.pk == change.task.holder_id else "is disabled"
        raise Refused(Reason.AGENT_REFUSED, f"{to} {what}")
    lasts: dt.timedelta = settings.TASKS_TRANSFER_FOR
    change.transfer = Transfer.objects.create(
        task=change.task,
        from_agent=change.agent,
        to_agent=to,
        note=change.details.text,
        status=State.PENDING,
        created_at=change.now,
        expires_at=min(change.now + lasts, until),
    )
    change.task.transfer_until = change.transfer.expires_at
    change.created_id = change.transfer.pk
    if change.transfer.note:
        change.data["note"] = change.transfer.note
    _note(change, change.transfer)


def accept(change: Change) -> None:
    """The other agent holds the task, until the same time; its checkpoints begin anew."""
    transfer = _end(change, State.ACCEPTED)
    change.task.holder = transfer.to_agent
    change.task.misses = 0
    terms.begin_checkpoint(change.task, change.now)
    worktree_use.pass_on(change, transfer.to_agent)


def decline(change: Change) -> None:
    """The holder keeps it."""
    _end(change, State.DECLINED)


def withdraw(change: Change) -> None:
    """The holder keeps it after all."""
    _end(change, State.WITHDRAWN)


def expire(change: Change) -> None:
    """Nobody has answered; the holder keeps it."""
    _end(change, State.EXPIRED)


def end_pending(change: Change) -> None:
    """The task goes elsewhere, so nothing is there to be handed over."""
    if change.transfer is not None:
        _end(change, State.EXPIRED)


def _end(change: Change, status: Transfer.State) -> Transfer:
    transfer = change.transfer
    if transfer is None:
        raise Refused(Reason.NO_TRANSFER, "no transfer is pending")
    transfer.status, transfer.answered_at = status, change.now
    transfer.save(update_fields=["status", "answered_at"])
    change.task.transfer_until = None
    _note(change, transfer)
    change.data["transfer"] = status.value
    return transfer


def _note(change: Change, transfer: Transfer) -> None:
    change.data |= {
        "transfer_id": transfer.pk,
        "from": str(transfer.from_agent),
        "to": str(transfer.to_agent),
    }
