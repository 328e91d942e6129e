"""What tests of tasks have in common: agents, and time that passes."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

from django.contrib.auth.models import User
from django.db.models import F

from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from notify.models import Notification
from tests.workspaces.factories import WorktreeFactory
from workspaces.models import Worktree
from workspaces.tasks import actions, agents, clock, deadlines, job_types
from workspaces.tasks.actors import Actor, acting
from workspaces.tasks.models import Agent, Submission, Task, TaskEvent, Transfer
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Action, Deadline
from workspaces.tasks.watches import WORKER_ACTIONS

HOUR = dt.timedelta(hours=1)
MINUTE = dt.timedelta(minutes=1)
SECOND = dt.timedelta(seconds=1)

TERMS: dict[str, dt.timedelta] = {
    "open_for": 10 * HOUR,
    "hold_for": 8 * HOUR,
    "review_for": 6 * HOUR,
}
"""How long the tasks of tests are open, held and reviewed."""


def agent(name: str) -> Actor:
    """The user of this name as an actor, made where there is none."""
    if name.startswith("service:"):
        bare = name.removeprefix("service:")
        found = Agent.objects.filter(name=bare).first() or agents.add(bare)
        return acting(found)
    user, _ = User.objects.get_or_create(username=name)
    return acting(agents.of_user(user))


def publish(by: str = "alice", **values: Any) -> Task:
    """A task of an agent's, ``direct`` if nothing else is said."""
    terms = {**TERMS}
    if values.get("template") == "contest":
        del terms["hold_for"]
    given: dict[str, Any] = {"title": "Sort the lists", **terms, **values}
    return actions.publish(by=agent(by), **given)


def held(by: str = "bob", **values: Any) -> Task:
    """A task that an agent holds."""
    task = publish(**values)
    assert actions.take(task.pk, by=agent(by)).ok
    return now(task)


def reviewing(by: str = "bob", **values: Any) -> Task:
    """A task whose holder has submitted it."""
    task = held(by, **values)
    assert actions.submit(task.pk, by=agent(by), text="done").ok
    return now(task)


def contest(*entrants: str, **values: Any) -> Task:
    """A contest into which each of these has handed something in."""
    task = publish(template="contest", **values)
    for name in entrants:
        assert actions.submit(task.pk, by=agent(name), text=f"by {name}").ok
    return now(task)


def in_review(*entrants: str, **values: Any) -> Task:
    """A contest that has closed, with entries of these."""
    task = contest(*entrants, **values)
    pass_and_work(TERMS["open_for"])
    return now(task)


def offer(task: Task, to: str = "carol", *, by: str = "bob", note: str = "") -> Outcome:
    """Have the holder offer the task to another agent."""
    other = agent(to).agent
    assert other is not None
    return actions.offer_transfer(task.pk, by=agent(by), to=other, note=note)


def offered(to: str = "carol", **values: Any) -> Task:
    """A task that is held, and offered to another agent."""
    task = held(**values)
    assert offer(task, to).ok
    return now(task)


def now(task: Task) -> Task:
    """The task as it is now."""
    return Task.objects.with_people().with_transfers().get(pk=task.pk)


def entry(task: Task, by: str) -> Submission:
    """What this agent has handed in last."""
    return task.submissions.filter(agent=agent(by).agent).latest("pk")


def history(task: Task) -> list[str]:
    """What was done to the task, in order."""
    return list(task.events.values_list("action", flat=True))


def pass_time(duration: dt.timedelta) -> None:
    """Have ``duration`` go by: everything that tasks and their jobs remember was so much longer ago."""
    columns = [deadline.value for deadline in Deadline]
    columns.remove(Deadline.TRANSFER_UNTIL.value)
    _earlier(Task, duration, *columns, "created_at", "updated_at", "ended_at")
    _earlier(Transfer, duration, "created_at", "expires_at", "answered_at")
    _earlier(Submission, duration, "created_at", "decided_at")
    _earlier(TaskEvent, duration, "created_at")
    for job in Job.objects.filter(type__in=WORKER_ACTIONS):
        job.run_at -= duration
        if job.payload.get("deadline"):
            at = dt.datetime.fromisoformat(job.payload["deadline"]) - duration
            job.payload = {"deadline": job_types.written(at)}
            job.unique_key = job_types.key(Action(job.type), int(job.ref_id or 0), at)
        job.save(update_fields=["run_at", "payload", "unique_key"])


def _earlier(model: Any, duration: dt.timedelta, *columns: str) -> None:
    model.objects.update(**{column: F(column) - duration for column in columns})


def pass_and_work(duration: dt.timedelta) -> list[Job]:
    """Have time go by, and the worker do what is due then."""
    pass_time(duration)
    return run_due_jobs()


def live_jobs(task: Task) -> set[tuple[str, dt.datetime]]:
    """The deadlines for which the task has jobs that wait or run."""
    jobs = Job.objects.filter(
        ref_id=str(task.pk),
        type__in=WORKER_ACTIONS,
        status__in=[Status.PENDING, Status.RUNNING],
    )
    return {
        (job.type, dt.datetime.fromisoformat(job.payload["deadline"])) for job in jobs
    }


def unwatched(task: Task) -> set[tuple[str, dt.datetime]]:
    """The live deadlines of the task that have no job."""
    wanted = {(live.action.value, live.at) for live in deadlines.live(now(task))}
    return wanted - live_jobs(task)


def worktree(by: str, **values: Any) -> Worktree:
    """A worktree that an agent holds."""
    holder = str(agent(by))
    row: Worktree = WorktreeFactory(
        held_by=holder, last_held_by=holder, held_since=clock.now(), **values
    )
    return row


def told(topic: str) -> dict[str, int]:
    """Who was told under the topic, and how often."""
    rows = Notification.objects.filter(topic=topic).values_list("user__username")
    return dict(Counter(name for (name,) in rows))


def last_event(task: Task) -> TaskEvent:
    """What was done to the task last."""
    return task.events.latest("pk")
