"""The deadlines that begin and end with a status, a hold and a checkpoint: arithmetic on a task in memory."""

from __future__ import annotations

import datetime as dt

from django.conf import settings

from workspaces.tasks.models import Task
from workspaces.tasks.states import LIVE, Status, Template


def enter(task: Task, status: Status, now: dt.datetime) -> None:
    """Set the deadlines of the status, and take back those that count in it no more."""
    if status != Status.HELD:
        _end_checkpoints(task)
    if status != Status.REVIEWING:
        task.review_until = task.review_warn_at = None
    if status == Status.OPEN:
        task.open_until = now + task.open_for
        task.hold_until = None
        task.ended_at = None
    elif status == Status.HELD:
        task.open_until = None
    elif status == Status.REVIEWING:
        task.review_until = now + task.review_for
        lead: dt.timedelta = settings.TASKS_REVIEW_WARNING_LEAD
        task.review_warn_at = task.review_until - _shortened(lead, task.review_for)
        # What was handed in to a contest is compared with when it closed.
        if task.template == Template.DIRECT:
            task.open_until = None
    if status not in LIVE:
        task.open_until = task.hold_until = None
        task.ended_at = now


def begin_hold(task: Task, now: dt.datetime) -> None:
    """The holder's time begins."""
    if task.hold_for is None:
        raise ValueError(f"{task} is a {task.template} task, which nobody holds")
    task.hold_until = now + task.hold_for
    task.misses = 0
    begin_checkpoint(task, now)


def begin_checkpoint(task: Task, now: dt.datetime) -> None:
    """The next checkpoint is due a period from now, unless the whole time is over by then."""
    every, until = task.checkpoint_every, task.hold_until
    if every is None or until is None or now + every >= until:
        _end_checkpoints(task)
        return
    lead: dt.timedelta = settings.TASKS_CHECKPOINT_WARNING_LEAD
    task.checkpoint_due_at = now + every
    task.checkpoint_warn_at = task.checkpoint_due_at - _shortened(lead, every)


def _end_checkpoints(task: Task) -> None:
    task.checkpoint_due_at = task.checkpoint_warn_at = None


def _shortened(lead: dt.timedelta, period: dt.timedelta) -> dt.timedelta:
    """No warning comes in the first half of what it warns of the end of."""
    return min(lead, period / 2)
