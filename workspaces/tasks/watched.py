"""Which live deadlines have a job that waits or runs, and what became of the jobs of the others."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db.models.functions import Now

from jobs.models import LIVE, Job, Status
from jobs.querysets import JobQuerySet
from workspaces.tasks import deadlines, job_types
from workspaces.tasks.deadlines import Live
from workspaces.tasks.models import Task
from workspaces.tasks.states import Action, Template

LONGEST_WAIT = dt.timedelta(hours=1)
"""No deadline job waits longer for its next attempt."""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A live deadline, and its job: the live one, else the newest of those that have ended, None where there is none."""

    task: Task
    live: Live
    job: Job | None

    @property
    def is_watched(self) -> bool:
        return self.job is not None and self.job.status in LIVE

    def is_put_off(self, now: dt.datetime) -> bool:
        """Whether its job waits for a time far behind the deadline, as no backoff of its own makes it wait."""
        return self.job is not None and _put_off(
            self.job.status, self.job.run_at, self.live.at, now
        )

    @property
    def is_given_up(self) -> bool:
        """Whether its job has died, or was cancelled."""
        return self.job is not None and self.job.status in (
            Status.DEAD,
            Status.CANCELLED,
        )

    @property
    def needs_judge(self) -> bool:
        """Whether it takes a judge to act on it, and none is configured."""
        return (
            self.live.action is Action.REVIEW_AUTO_ACCEPT
            and self.task.template == Template.CONTEST
            and not settings.TASKS_CONTEST_JUDGE
        )


def unwatched(tasks: Iterable[Task]) -> list[Task]:
    """Those of the tasks, which were read ``with_transfers``, of which a live deadline has no live job that comes in time.

    One query.
    """
    wanted = [
        (task, {_key(task, live): live.at for live in deadlines.live(task)})
        for task in tasks
    ]
    every = {key: at for _, keys in wanted for key, at in keys.items()}
    rows = _live_jobs(list(every)).values_list("unique_key", "status", "run_at", Now())
    live = {
        key
        for key, status, run_at, now in rows
        if not _put_off(status, run_at, every[str(key)], now)
    }
    return [task for task, keys in wanted if keys.keys() - live]


def look(tasks: Sequence[Task]) -> list[Watched]:
    """Every live deadline of the tasks, which were read ``with_transfers``, with its job. One query, or two."""
    found = [
        (task, live, _key(task, live))
        for task in tasks
        for live in deadlines.live(task)
    ]
    rows = _live_jobs([key for _, _, key in found]).defer("payload")
    jobs = {str(job.unique_key): job for job in rows}
    left = [(task, key) for task, _, key in found if key not in jobs]
    if left:
        # By the task's id, since only live jobs are found by their key.
        ended = Job.objects.filter(
            ref_id__in={str(task.pk) for task, _ in left},
            unique_key__in={key for _, key in left},
            completed_at__isnull=False,
        ).defer("payload")
        for job in ended.order_by("pk"):
            jobs[str(job.unique_key)] = job
    return [
        Watched(task=task, live=live, job=jobs.get(key)) for task, live, key in found
    ]


def _put_off(
    status: str, run_at: dt.datetime, at: dt.datetime, now: dt.datetime
) -> bool:
    return status == Status.PENDING and run_at > max(at, now) + LONGEST_WAIT


def _key(task: Task, live: Live) -> str:
    return job_types.key(live.action, task.pk, live.at)


def _live_jobs(keys: Sequence[str]) -> JobQuerySet:
    return Job.objects.live().filter(unique_key__in=keys)
