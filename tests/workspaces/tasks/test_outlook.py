from __future__ import annotations

import pytest
from pytest_django import Settings

from jobs.models import Job
from jobs.testing import run_due_jobs
from tests.workspaces.tasks.market import (
    HOUR,
    MINUTE,
    agent,
    contest,
    held,
    now,
    pass_and_work,
    pass_time,
    publish,
    reviewing,
)
from workspaces.tasks import actions, clock, machine, outlook
from workspaces.tasks.models import Task
from workspaces.tasks.outlook import Expected

pytestmark = pytest.mark.django_db


def expected(task: Task) -> list[Expected]:
    return outlook.expected(now(task), now=clock.now())


def said(task: Task) -> list[tuple[str, str, str | None]]:
    return [(one.action.value, one.says, one.target) for one in expected(task)]


def test_the_deadlines_of_a_held_task_in_the_order_of_their_times():
    task = held(checkpoint_every=2 * HOUR, final_miss=2)
    to = agent("carol").agent
    assert to
    actions.offer_transfer(task.pk, by=agent("bob"), to=to)
    task = now(task)
    assert said(task) == [
        ("transfer_expire", "Transfer came to nothing", "held"),
        ("checkpoint_warn", "Checkpoint is due soon", "held"),
        ("checkpoint_miss", "Checkpoint missed", "held"),
        ("hold_timeout", "Task given back: open", "open"),
    ]
    assert [(one.deadline.value, one.at) for one in expected(task)] == [
        ("transfer_until", task.transfer_until),
        ("checkpoint_warn_at", task.checkpoint_warn_at),
        ("checkpoint_due_at", task.checkpoint_due_at),
        ("hold_until", task.hold_until),
    ]


def test_it_is_what_the_worker_then_does():
    task = held(checkpoint_every=2 * HOUR, final_miss=1, returns_allowed=0)
    miss = next(one for one in expected(task) if one.action == "checkpoint_miss")
    assert miss.says == "Task closed: closed"
    pass_and_work(2 * HOUR)
    assert now(task).status == miss.target == "closed"


def test_each_names_its_job():
    task = publish()
    job = Job.objects.get(ref_id=str(task.pk))
    (one,) = expected(task)
    assert one.job
    assert (one.job["id"], one.job["status"]) == (job.pk, "pending")
    Job.objects.all().delete()
    (one,) = expected(task)
    assert one.job is None


def test_a_job_that_is_there_anew_counts_before_the_one_that_died():
    task = publish()
    first = Job.objects.get()
    first.status, first.completed_at = "dead", clock.now()
    first.save()
    (one,) = expected(task)
    assert one.job
    assert one.job["status"] == "dead"
    machine.watch(task.pk)
    (one,) = expected(task)
    assert one.job
    assert (one.job["id"] != first.pk, one.job["status"]) == (True, "pending")


def test_the_jobs_of_others_and_of_other_deadlines_do_not_count():
    task, other = publish(), publish()
    Job.objects.filter(ref_id=str(task.pk)).delete()
    assert [one.job for one in expected(task)] == [None]
    assert all(one.job for one in expected(other))


def test_a_deadline_that_passed_undecided_is_still_there():
    task = publish()
    pass_time(11 * HOUR)
    (one,) = expected(task)
    assert one.at < clock.now()
    assert one.target == "expired"


def test_a_warning_that_comes_too_late_decides_nothing():
    task = reviewing()
    pass_time(6 * HOUR)
    warning, silence = expected(task)
    assert warning.says == "decides nothing: it is too late to warn"
    assert (silence.says, silence.target) == ("Task accepted: accepted", "accepted")


def test_a_warning_of_a_checkpoint_that_is_over_decides_nothing():
    task = held(checkpoint_every=2 * HOUR)
    pass_time(2 * HOUR)
    (warning, *_) = expected(task)
    assert warning.says.startswith("decides nothing: too late to checkpoint_warn")


def test_a_contest_closes_by_what_was_handed_in():
    assert said(contest()) == [("contest_close", "Task expired: expired", "expired")]
    assert said(contest("bob")) == [
        ("contest_close", "Task submitted for review: reviewing", "reviewing")
    ]


def test_a_contest_in_review_waits_for_its_publisher_or_a_judge(settings: Settings):
    settings.TASKS_CONTEST_JUDGE = ""
    task = contest("bob")
    pass_time(task.open_for)
    run_due_jobs()
    pass_time(MINUTE)
    _, silence = expected(task)
    assert silence.target is None
    assert silence.says == (
        "decides nothing: no judge is configured (TASKS_CONTEST_JUDGE)"
    )
    settings.TASKS_CONTEST_JUDGE = "some.judge"
    _, silence = expected(task)
    assert silence.says == "Task accepted: accepted"


def test_what_has_ended_expects_nothing():
    task = publish()
    actions.cancel(task.pk, by=agent("alice"))
    assert expected(task) == []
