from __future__ import annotations

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from jobs import actions as job_actions
from jobs.models import Job
from tests.workspaces.tasks import plugs
from tests.workspaces.tasks.market import (
    HOUR,
    contest,
    held,
    now,
    pass_and_work,
    publish,
)
from workspaces.tasks import watched
from workspaces.tasks.models import Task
from workspaces.tasks.states import Action
from workspaces.tasks.watched import Watched

pytestmark = pytest.mark.django_db


def only(task: Task) -> Watched:
    (found,) = watched.look([now(task)])
    return found


def kill(**which: str) -> None:
    Job.objects.filter(**which).update(status="dead", completed_at=Now())


def test_each_live_deadline_is_found_with_its_job():
    task = held(checkpoint_every=HOUR)
    found = watched.look([now(task)])
    assert {each.live.action for each in found} == {
        Action.HOLD_TIMEOUT,
        Action.CHECKPOINT_WARN,
        Action.CHECKPOINT_MISS,
    }
    for each in found:
        assert each.job is not None
        assert each.job.type == each.live.action
        assert (each.is_watched, each.is_given_up) == (True, False)
    assert watched.unwatched([now(task)]) == []


def test_a_deadline_without_a_job_is_found_with_none():
    task = publish()
    Job.objects.all().delete()
    found = only(task)
    assert (found.job, found.is_watched, found.is_given_up) == (None, False, False)
    assert watched.unwatched([now(task)]) == [task]


@pytest.mark.parametrize("status", ["dead", "cancelled"])
def test_one_whose_job_was_given_up_is_found_with_it(status: str):
    task = publish()
    Job.objects.update(status=status, completed_at=Now())
    found = only(task)
    assert found.job == Job.objects.get()
    assert (found.is_watched, found.is_given_up) == (False, True)
    assert watched.unwatched([now(task)]) == [task]


def test_a_live_job_counts_before_one_that_died_later():
    task = publish()
    live = Job.objects.get()
    dead = Job.objects.get()
    dead.pk, dead.status, dead.completed_at = None, "dead", now(task).created_at
    dead.pk = Job._meta.pk.get_default()
    dead.save(force_insert=True)
    assert dead.pk > live.pk
    assert only(task).job == live
    job_actions.cancel([live.pk], actor="test")
    assert only(task).job == dead  # the newest of those that have ended


def test_a_job_of_another_task_or_time_watches_nothing():
    task, other = publish(), publish()
    Job.objects.filter(ref_id=str(task.pk)).delete()
    Task.objects.filter(pk=other.pk).update(open_until=now(other).open_until + HOUR)  # type: ignore[operator]
    assert set(watched.unwatched([now(task), now(other)])) == {task, other}


def test_what_has_ended_has_nothing_to_watch():
    task = publish()
    pass_and_work(10 * HOUR)
    assert watched.look([now(task)]) == []
    assert watched.unwatched([now(task)]) == []


def test_a_judge_is_needed_for_a_contest_only(settings: Settings):
    task = contest("bob")
    pass_and_work(10 * HOUR)
    needs = {each.live.action: each.needs_judge for each in watched.look([now(task)])}
    assert needs == {Action.REVIEW_AUTO_ACCEPT: True, Action.REVIEW_WARN: False}
    settings.TASKS_CONTEST_JUDGE = plugs.JUDGE
    assert not any(each.needs_judge for each in watched.look([now(task)]))
    assert not only(publish()).needs_judge


def test_many_tasks_are_two_queries():
    tasks = [now(publish()) for _ in range(5)]
    kill(ref_id=str(tasks[0].pk))
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert watched.unwatched(tasks) == [tasks[0]]
    assert len(captured) == 1
    with CaptureQueriesContext(connection) as captured:
        assert len(watched.look(tasks)) == 5
    assert len(captured) == 2
