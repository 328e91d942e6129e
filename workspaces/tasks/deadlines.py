"""Which deadlines of a task are live, and the job that watches each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import NamedTuple

from jobs.enqueue import NewJob, enqueue_many
from workspaces.tasks import job_types
from workspaces.tasks.models import Task
from workspaces.tasks.states import Action, Deadline, Template
from workspaces.tasks.watches import WATCHES


class Live(NamedTuple):
    """A deadline that leads to an action of the worker."""

    action: Action
    at: dt.datetime


def times(task: Task) -> dict[Deadline, dt.datetime | None]:
    """Every deadline of the task, live or not; it was read ``with_transfers``."""
    return {deadline: getattr(task, deadline.value) for deadline in Deadline}


def live(task: Task) -> list[Live]:
    """Those that count in the task's status."""
    found = []
    for watch in WATCHES:
        at: dt.datetime | None = getattr(task, watch.deadline.value)
        if (
            at is not None
            and watch.status == task.status
            and watch.template in (None, task.template)
        ):
            found.append(Live(watch.action, at))
    return found


def jobs(task: Task) -> list[NewJob]:
    """The job of each live deadline."""
    return [job(task, each) for each in live(task)]


def job(task: Task, each: Live) -> NewJob:
    """The job of one of its live deadlines."""
    action, at = each
    judged = action is Action.REVIEW_AUTO_ACCEPT and task.template == Template.CONTEST
    return job_types.deadline_job(action, task.pk, at, judged=judged)


def watch(tasks: Iterable[Task]) -> None:
    """See that each live deadline of these has its job; those that are there are not doubled."""
    enqueue_many(job for task in tasks for job in jobs(task))
