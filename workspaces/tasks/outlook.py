"""What the pending deadlines of a task will do, as things stand, and the job that waits for each."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from jobs.models import Job
from workspaces.tasks import deadlines, watched
from workspaces.tasks.decisions import Refusal, decide
from workspaces.tasks.facts import Facts
from workspaces.tasks.models import Submission, Task
from workspaces.tasks.states import Action, Deadline, Role, Status, Template
from workspaces.tasks.transition import Transition
from workspaces.tasks.watched import Watched
from workspaces.tasks.watches import WATCHES

_DEADLINES: dict[Action, Deadline] = {watch.action: watch.deadline for watch in WATCHES}

NO_JUDGE = "decides nothing: no judge is configured (TASKS_CONTEST_JUDGE)"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A deadline that is to come, or has passed undecided.

    ``target`` is the status that the task will have, None where it decides nothing; ``job`` the id and status of its job,
    the newest where it has had several; None where it has none.
    """

    deadline: Deadline
    action: Action
    at: dt.datetime
    target: Status | None
    says: str
    job: dict[str, Any] | None


def expected(task: Task, *, now: dt.datetime) -> list[Expected]:
    """The live deadlines of the task, which was read ``with_transfers``, in the order of their times."""
    return [
        _expected(one, now)
        for one in sorted(watched.look([task]), key=lambda one: one.live.at)
    ]


def _expected(one: Watched, now: dt.datetime) -> Expected:
    action, at = one.live
    if one.needs_judge:
        target, says = None, NO_JUDGE
    else:
        target, says = _leads_to(one.task, action, max(at, now))
    return Expected(
        deadline=_DEADLINES[action],
        action=action,
        at=at,
        target=target,
        says=says,
        job=_about(one.job) if one.job is not None else None,
    )


def _about(job: Job) -> dict[str, Any]:
    return {
        "id": job.pk,
        "status": job.status,
        "run_at": job.run_at,
        "last_error": job.last_error,
    }


def _leads_to(
    task: Task, action: Action, now: dt.datetime
) -> tuple[Status | None, str]:
    row = decide(action, _facts(task, now), {Role.WORKER})
    if isinstance(row, Refusal):
        return None, f"decides nothing: {row.reason}"
    return row.target, _says(row)


def _says(row: Transition) -> str:
    if row.topic is None:
        return "decides nothing: it is too late to warn"
    title = row.topic.title
    return title if row.source == row.target else f"{title}: {row.target}"


def _facts(task: Task, now: dt.datetime) -> Facts:
    return Facts(
        now=now,
        status=Status(task.status),
        template=Template(task.template),
        deadlines=deadlines.times(task),
        misses=task.misses,
        final_miss=task.final_miss,
        returns=task.returns,
        returns_allowed=task.returns_allowed,
        entries=Submission.objects.filter(
            task=task, decision=Submission.Decision.PENDING
        ).count()
        if task.template == Template.CONTEST
        else 0,
    )
