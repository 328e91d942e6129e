"""The worktree that a task's holder works in: taken over with the hold, and let go of with the task."""

from __future__ import annotations

import datetime as dt

from workspaces import holds
from workspaces.models import Worktree
from workspaces.tasks.change import Change
from workspaces.tasks.models import Agent, Task
from workspaces.tasks.outcomes import Refused
from workspaces.tasks.states import LIVE, Reason


def attach(change: Change, worktree: Worktree) -> None:
    """Have the task use a worktree that its holder holds; one that it used before is let go of."""
    task = change.task
    row = Worktree.objects.select_for_update().filter(pk=worktree.pk).first()
    if row is None:
        raise Refused(
            Reason.WORKTREE_REFUSED, f"there is no worktree {worktree.pk} any more"
        )
    if task.workspace_id is not None and task.workspace_id != row.workspace_id:
        raise Refused(
            Reason.WORKTREE_REFUSED, f"{row} is of another workspace than the task's"
        )
    if row.held_by != str(change.agent):
        holder = f"by {row.held_by!r}" if row.held_by else "by nobody"
        raise Refused(
            Reason.WORKTREE_REFUSED,
            f"{row} is held {holder}; `manage.py worktree acquire … --holder {change.agent}` holds one",
        )
    # Of this hold: what has lost the worktree since names it still.
    used = Task.objects.filter(
        status__in=LIVE, worktree=row, worktree_held_since=row.held_since
    )
    if other := used.exclude(pk=task.pk).first():
        raise Refused(Reason.WORKTREE_REFUSED, f"{row} is in use for {other}")
    if task.worktree_id != row.pk:
        release(change)
    task.worktree, task.worktree_held_since = row, row.held_since
    # The task's own deadlines say how long.
    keep_alive(change)
    change.data["worktree_id"] = row.pk


def keep_alive(change: Change) -> None:
    """Say that the task's worktree is in use, where it still has it; it is held until the task lets go of it."""
    task = change.task
    match task.worktree_id, task.worktree_held_since:
        case int(worktree_id), dt.datetime() as since:
            holds.keep_alive(worktree_id, held_since=since)


def release(change: Change) -> None:
    """Let go of the task's worktree, where it still has it."""
    task = change.task
    match task.worktree_id, task.worktree_held_since:
        case int(worktree_id), dt.datetime() as since:
            if holds.let_go(worktree_id, held_since=since):
                change.data["worktree_released"] = worktree_id
    task.worktree, task.worktree_held_since = None, None


def pass_on(change: Change, to: Agent) -> None:
    """Give the worktree to the task's new holder, work and all, where the task still has it."""
    task = change.task
    worktree_id, since = task.worktree_id, task.worktree_held_since
    if worktree_id is None or since is None:
        return
    if not holds.pass_on(worktree_id, held_since=since, holder=str(to)):
        task.worktree, task.worktree_held_since = None, None
