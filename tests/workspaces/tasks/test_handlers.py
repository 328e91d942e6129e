from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now
from pytest_django import Settings

from jobs import actions as job_actions
from jobs.models import Job, Status
from jobs.registry import job_types as registered
from jobs.testing import run_due_jobs
from tests.workspaces.tasks import plugs
from tests.workspaces.tasks.market import (
    HOUR,
    MINUTE,
    SECOND,
    agent,
    contest,
    held,
    history,
    live_jobs,
    now,
    pass_and_work,
    pass_time,
    publish,
    reviewing,
    unwatched,
)
from workspaces.tasks import actions, handlers
from workspaces.tasks.judge import Verdict
from workspaces.tasks.models import Task
from workspaces.tasks.states import Action
from workspaces.tasks.states import Status as TaskStatus
from workspaces.tasks.watches import WORKER_ACTIONS

pytestmark = pytest.mark.django_db

EIGHT = [action.value for action in WORKER_ACTIONS]


def insert(job_type: str, ref_id: str | None, **columns: Any) -> Job:
    """A job put into the table by hand."""
    names = ", ".join(["id", "type", "ref_id", *columns])
    marks = ", ".join(["gen_random_uuid()", *["%s"] * (2 + len(columns))])
    values = [
        json.dumps(value) if isinstance(value, dict) else value
        for value in columns.values()
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO jobs ({names}) VALUES ({marks}) RETURNING id",
            [job_type, ref_id, *values],
        )
        (pk,) = cursor.fetchone()
    return Job.objects.get(pk=pk)


def after(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def due_again(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(run_at=Now())


def job_of(task: Task, action: Action) -> Job:
    return Job.objects.filter(type=action.value, ref_id=str(task.pk)).latest("pk")


def later(task: Task, duration: dt.timedelta, *columns: str) -> None:
    """Move deadlines of the task, by hand."""
    Task.objects.filter(pk=task.pk).update(
        **{column: F(column) + duration for column in columns}
    )


def to_expire() -> Task:
    return publish()


def to_be_warned() -> Task:
    return held(checkpoint_every=HOUR)


def offered() -> Task:
    task = held()
    actions.offer_transfer(task.pk, by=agent("bob"), to=agent("carol").agent)  # type: ignore[arg-type]
    return now(task)


@pytest.mark.parametrize(
    ("action", "task", "time", "status"),
    [
        ("open_expire", to_expire, 10 * HOUR, "expired"),
        ("hold_timeout", held, 8 * HOUR, "open"),
        ("checkpoint_warn", to_be_warned, 50 * MINUTE, "held"),
        ("checkpoint_miss", to_be_warned, 61 * MINUTE, "held"),
        ("contest_close", lambda: contest("bob"), 10 * HOUR, "reviewing"),
        ("transfer_expire", offered, 61 * MINUTE, "held"),
        ("review_warn", reviewing, 4 * HOUR, "reviewing"),
        ("review_auto_accept", reviewing, 6 * HOUR, "accepted"),
    ],
)
def test_a_job_put_in_by_hand_does_what_its_type_says(
    action: str, task: Any, time: dt.timedelta, status: str
):
    made = task()
    pass_time(time)
    Job.objects.all().delete()
    job = insert(action, str(made.pk))
    run_due_jobs()
    assert (after(job).status, after(job).last_error) == (Status.COMPLETED, "")
    assert history(made)[-1] == action
    assert made.events.latest("pk").actor == "worker"
    assert now(made).status == status


@pytest.mark.parametrize("name", EIGHT)
def test_a_job_without_ref_id_fails_and_says_so(name: str):
    job = insert(name, None)
    run_due_jobs()
    job = after(job)
    assert (job.status, job.attempts) == (Status.PENDING, 1)
    assert (
        job.last_error
        == f"DeadlineJobError: jobs.ref_id missing for {name}, id: {job.pk}"
    )


@pytest.mark.parametrize("name", EIGHT)
def test_a_job_of_a_task_that_is_not_there_fails_and_says_so(name: str):
    job = insert(name, "12345678")
    run_due_jobs()
    job = after(job)
    assert (job.status, job.attempts) == (Status.PENDING, 1)
    assert (
        job.last_error
        == f"DeadlineJobError: tasks row missing for {name}, id: 12345678"
    )


@pytest.mark.parametrize(
    "ref_id",
    ["", "x", "-1", "1.0", "1e3", " 1", "0x1", "9" * 19, "9" * 200, "\u0661", "\u00b2"],
)
def test_what_is_no_tasks_id_is_a_task_that_is_not_there(ref_id: str):
    publish()
    job = insert("open_expire", ref_id)
    run_due_jobs()
    assert (
        after(job).last_error
        == f"DeadlineJobError: tasks row missing for open_expire, id: {ref_id}"
    )


def test_the_digits_of_other_scripts_are_no_id():
    task = publish()
    pass_time(10 * HOUR)
    Job.objects.all().delete()
    other = str(task.pk).translate({48 + n: 0x660 + n for n in range(10)})
    job = insert("open_expire", other)
    run_due_jobs()
    assert "tasks row missing" in after(job).last_error
    assert now(task).status == TaskStatus.OPEN


def test_it_is_dead_after_five_attempts_with_a_growing_wait():
    job = insert("hold_timeout", None)
    for attempt in range(1, 5):
        run_due_jobs()
        failed = after(job)
        assert (failed.status, failed.attempts) == (Status.PENDING, attempt)
        plain = 30 * SECOND * 2 ** (attempt - 1)
        assert plain <= failed.run_at - failed.updated_at <= plain * 1.25
        due_again(job)
    run_due_jobs()
    assert (after(job).status, after(job).attempts) == (Status.DEAD, 5)
    assert job.attempt_set.count() == 5


def test_the_wait_doubles_from_30_seconds():
    for attempt, plain in enumerate([30, 60, 120, 240], start=1):
        for _ in range(20):
            wait = handlers.delay(attempt) / SECOND
            assert plain <= wait <= plain * 1.25


def test_one_bad_job_does_not_hold_up_the_others():
    task = publish()
    pass_time(10 * HOUR)
    insert("open_expire", None, run_at="2020-01-01T00:00:00Z")
    insert("open_expire", "x", run_at="2020-01-01T00:00:00Z")
    run_due_jobs()
    assert now(task).status == TaskStatus.EXPIRED


@pytest.mark.parametrize(
    "payload", [{}, {"x": [1]}, {"deadline": "no time"}, {"deadline": [5]}]
)
def test_the_payload_decides_nothing(payload: dict[str, Any]):
    task = publish()
    pass_time(10 * HOUR)
    Job.objects.all().delete()
    job = insert("open_expire", str(task.pk), payload=payload)
    run_due_jobs()
    assert after(job).status == Status.COMPLETED
    assert now(task).status == TaskStatus.EXPIRED


def test_a_claimed_job_is_leased_for_60_seconds(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    leased: list[dt.timedelta] = []

    def judge(*given: Any) -> Verdict:
        job = Job.objects.get(status=Status.RUNNING)
        assert job.lease_until is not None
        assert job.started_at is not None
        leased.append(job.lease_until - job.started_at)
        return Verdict(winner=given[2][0].id, reasons="x")

    settings.TASKS_CONTEST_JUDGE = plugs.JUDGE
    monkeypatch.setattr(plugs, "judge", judge)
    contest("bob")
    pass_and_work(10 * HOUR)
    pass_and_work(6 * HOUR)
    assert leased == [60 * SECOND]


def test_a_judge_has_its_time_and_nothing_else_has_a_limit(settings: Settings):
    limits = {name: registered()[name].timeout for name in EIGHT}
    assert limits.pop("review_auto_accept") == settings.TASKS_JUDGE_TIMEOUT
    assert set(limits.values()) == {None}
    assert registered()["arbitration_opinion"].timeout == settings.TASKS_JUDGE_TIMEOUT


def test_a_deadlines_own_job_that_is_run_early_waits_for_it():
    task = publish()
    job = job_of(task, Action.OPEN_EXPIRE)
    assert job_actions.run_now([job.pk], actor="alice").done
    run_due_jobs()
    waiting = after(job)
    assert (waiting.status, waiting.attempts, waiting.last_error) == ("pending", 0, "")
    assert task.open_until is not None
    assert (
        task.open_until <= waiting.run_at <= task.open_until + 5 * SECOND
    )  # what the snooze took
    assert unwatched(task) == set()
    assert Job.objects.count() == 1
    pass_and_work(10 * HOUR + 5 * SECOND)
    assert now(task).status == TaskStatus.EXPIRED


def test_also_where_its_payload_was_changed_by_hand():
    task = publish()
    job = job_of(task, Action.OPEN_EXPIRE)
    Job.objects.filter(pk=job.pk).update(run_at=Now(), payload={})
    run_due_jobs()
    assert after(job).status == Status.PENDING
    assert Job.objects.count() == 1


def test_a_job_of_a_deadline_that_was_moved_leaves_one_for_the_new_time():
    task = publish()
    job = job_of(task, Action.OPEN_EXPIRE)
    later(task, HOUR, "open_until")
    assert unwatched(task) != set()
    Job.objects.filter(pk=job.pk).update(run_at=Now())
    run_due_jobs()
    assert after(job).status == Status.COMPLETED
    assert live_jobs(task) == {("open_expire", now(task).open_until)}


def test_one_put_in_by_hand_that_comes_early_leaves_the_deadlines_own_alone():
    task = publish()
    own = job_of(task, Action.OPEN_EXPIRE)
    job = insert("open_expire", str(task.pk))
    run_due_jobs()
    assert after(job).status == Status.COMPLETED
    assert now(task).status == TaskStatus.OPEN
    assert after(own) == own
    assert after(own).run_at == own.run_at
    assert Job.objects.count() == 2


def test_one_of_a_deadline_that_the_task_does_not_have_is_harmless():
    task = held()  # without checkpoints
    job = insert("checkpoint_miss", str(task.pk))
    before = history(task)
    run_due_jobs()
    assert after(job).status == Status.COMPLETED
    assert history(task) == before
    assert unwatched(task) == set()


@pytest.mark.parametrize("name", EIGHT)
def test_a_job_of_any_type_does_nothing_to_a_task_that_has_ended(name: str):
    task = publish()
    actions.cancel(task.pk, by=agent("alice"))
    before = history(task)
    job = insert(name, str(task.pk))
    run_due_jobs()
    assert (after(job).status, after(job).last_error) == (Status.COMPLETED, "")
    assert history(task) == before
    assert not Job.objects.filter(type__in=EIGHT, status="pending", run_at__lte=Now())


def test_a_second_execution_changes_nothing():
    task = held(returns_allowed=3)
    pass_and_work(8 * HOUR)
    before = (history(task), now(task).returns, live_jobs(task))
    for _ in range(2):
        insert("hold_timeout", str(task.pk))
        run_due_jobs()
    assert (history(task), now(task).returns, live_jobs(task)) == before


def test_all_that_is_late_runs_in_any_order_to_one_end():
    task = held(checkpoint_every=HOUR, final_miss=99, returns_allowed=0)
    # Nothing ran for a day: the next checkpoint's jobs and the end of the hold are due together, the latter first.
    pass_time(24 * HOUR)
    Job.objects.filter(type="hold_timeout").update(run_at="2020-01-01T00:00:00Z")
    run_due_jobs()
    assert now(task).status == TaskStatus.CLOSED
    assert history(task) == ["publish", "take", "hold_timeout"]
    assert unwatched(task) == set()
    assert not Job.objects.live().exists()


def test_a_deadline_has_one_job_however_often_it_is_asked_for():
    task = held(checkpoint_every=HOUR)
    before = Job.objects.count()
    for _ in range(3):
        actions.use_worktree(task.pk, by=agent("bob"), worktree=None)
    assert Job.objects.count() == before
    # The job of the time in which it could be taken is left, which does no harm.
    assert sorted(Job.objects.live().values_list("type", flat=True)) == [
        "checkpoint_miss",
        "checkpoint_warn",
        "hold_timeout",
        "open_expire",
    ]
