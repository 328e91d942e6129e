"""What each action changes beside the status: deadlines, holder, counters, and the rows that it leaves.

Called with the task's row locked and the action found to apply. Raises :class:`~workspaces.tasks.outcomes.Refused` where
what came with it does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workspaces.tasks import entries, terms, transfers, worktree_use
from workspaces.tasks.change import Change
from workspaces.tasks.models import Checkpoint
from workspaces.tasks.states import Action, Status, Template

Effect = Callable[[Change], None]


def carry_out(change: Change) -> None:
    """Change the task, in memory, and the rows that belong to it, in the database."""
    EFFECTS[change.action](change)
    if not change.leaves:
        return
    if change.row.source == Status.HELD:
        transfers.end_pending(change)
    change.task.status = change.target
    terms.enter(change.task, change.target, change.now)
    if change.target not in (Status.HELD, Status.REVIEWING):
        worktree_use.release(change)
        change.task.holder = None


def _nothing(change: Change) -> None:
    """The status says it all."""


def _take(change: Change) -> None:
    change.task.holder = change.agent
    terms.begin_hold(change.task, change.now)
    if change.details.worktree is not None:
        worktree_use.attach(change, change.details.worktree)


def _use_worktree(change: Change) -> None:
    if change.details.worktree is None:
        worktree_use.release(change)
    else:
        worktree_use.attach(change, change.details.worktree)


def _checkpoint(change: Change) -> None:
    row = Checkpoint.objects.create(
        task=change.task,
        agent=change.agent,
        note=change.details.text,
        created_at=change.now,
    )
    change.created_id = row.pk
    change.data["note"] = change.details.text
    change.task.misses = 0
    terms.begin_checkpoint(change.task, change.now)
    worktree_use.keep_alive(change)


def _checkpoint_warn(change: Change) -> None:
    change.task.checkpoint_warn_at = None


def _checkpoint_miss(change: Change) -> None:
    change.task.misses += 1
    change.data["misses"] = change.task.misses
    if change.leaves:
        _give_back(change)
    else:
        terms.begin_checkpoint(change.task, change.now)


def _give_back(change: Change) -> None:
    if change.details.reason:
        change.data["reason"] = change.details.reason
    change.task.returns += 1
    change.data["returns"] = change.task.returns


def _submit(change: Change) -> None:
    if change.task.template == Template.CONTEST:
        entries.supersede(change)
    entries.hand_in(change)


def _review_warn(change: Change) -> None:
    change.task.review_warn_at = None


def _auto_accept(change: Change) -> None:
    if change.task.template == Template.CONTEST:
        entries.choose(change)
    else:
        entries.accept(change)


def _reject(change: Change) -> None:
    entries.reject(change, change.details.reason)
    if change.target == Status.HELD:
        terms.begin_checkpoint(change.task, change.now)


def _cancel(change: Change) -> None:
    entries.reject(change, change.details.reason or "the task was cancelled")


def _reopen(change: Change) -> None:
    change.task.returns = 0
    if change.details.open_for is not None:
        change.task.open_for = change.details.open_for


EFFECTS: Mapping[Action, Effect] = {
    Action.PUBLISH: _nothing,
    Action.TAKE: _take,
    Action.USE_WORKTREE: _use_worktree,
    Action.CHECKPOINT: _checkpoint,
    Action.SUBMIT: _submit,
    Action.GIVE_BACK: _give_back,
    Action.OFFER_TRANSFER: transfers.offer,
    Action.ACCEPT_TRANSFER: transfers.accept,
    Action.DECLINE_TRANSFER: transfers.decline,
    Action.WITHDRAW_TRANSFER: transfers.withdraw,
    Action.ACCEPT: entries.accept,
    Action.REJECT: _reject,
    Action.PICK_WINNER: entries.choose,
    Action.CANCEL: _cancel,
    Action.REOPEN: _reopen,
    Action.OPEN_EXPIRE: _nothing,
    Action.HOLD_TIMEOUT: _give_back,
    Action.CHECKPOINT_WARN: _checkpoint_warn,
    Action.CHECKPOINT_MISS: _checkpoint_miss,
    Action.CONTEST_CLOSE: _nothing,
    Action.TRANSFER_EXPIRE: transfers.expire,
    Action.REVIEW_WARN: _review_warn,
    Action.REVIEW_AUTO_ACCEPT: _auto_accept,
}
"""One for each action; a test sees that none is missing."""
