from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import (
    DatabaseError,
    IntegrityError,
    connection,
    connections,
    transaction,
)
from django.db.models import F
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from jobs.models import Attempt, Job, Status
from jobs.testing import PATIENCE, run_due_jobs, wait_until
from notify.models import AuditEntry
from tests.workspaces.tasks import plugs
from tests.workspaces.tasks.market import (
    HOUR,
    MINUTE,
    agent,
    contest,
    held,
    live_jobs,
    now,
    pass_and_work,
    pass_time,
    publish,
    reviewing,
    unwatched,
)
from workspaces.tasks import actions, machine, reconcile
from workspaces.tasks.models import Task
from workspaces.tasks.states import Status as TaskStatus

pytestmark = pytest.mark.django_db


def tick(stop: threading.Event | None = None) -> dict[str, int]:
    return dict(reconcile.reconcile(stop or threading.Event()))


def jobs() -> list[tuple[Any, ...]]:
    """Every job, with all that is stored of it."""
    return list(Job.objects.order_by("pk").values_list())


def job_of(task: Task, job_type: str) -> Job:
    return Job.objects.filter(type=job_type, ref_id=str(task.pk)).latest("pk")


def end(job: Job, status: Status) -> None:
    Job.objects.filter(pk=job.pk).update(
        status=status,
        completed_at=Now(),
        attempts=5,
        leased_by=None,
        lease_until=None,
        last_error="why",
    )


def market() -> list[Task]:
    """A task in each state in which something is watched, and one that has ended."""
    offered = held(checkpoint_every=HOUR)
    to = agent("carol").agent
    assert to is not None
    actions.offer_transfer(offered.pk, by=agent("bob"), to=to)
    judged = contest("bob")
    pass_and_work(11 * HOUR)
    ended = publish()
    actions.cancel(ended.pk, by=agent("alice"))
    fresh = [publish(), held(checkpoint_every=HOUR), reviewing(), contest("bob")]
    again = held(checkpoint_every=HOUR)
    actions.offer_transfer(again.pk, by=agent("bob"), to=to)
    return [*fresh, again, judged, ended]


def test_a_healthy_market_is_left_alone():
    market()
    before = jobs()
    assert {status for _, status in Job.objects.values_list("pk", "status")} >= {
        "pending",
        "completed",
    }
    live = Task.objects.live().count()
    assert tick() == {"looked_at": live, "mended": 0, "waiting": 0, "failed": 0}
    assert jobs() == before
    assert live >= 6


def test_a_batch_is_two_queries_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
):
    for _ in range(5):
        held(checkpoint_every=HOUR)
    with CaptureQueriesContext(connection) as captured:
        assert tick()["looked_at"] == 5
    assert len(captured) == 2
    monkeypatch.setattr(reconcile, "BATCH", 2)
    with CaptureQueriesContext(connection) as captured:
        assert tick()["looked_at"] == 5
    assert len(captured) == 6


def test_jobs_that_were_deleted_are_there_again(caplog: pytest.LogCaptureFixture):
    tasks = market()
    wanted = {task.pk: live_jobs(task) for task in tasks if now(task).ended_at is None}
    Job.objects.all().delete()
    with (
        caplog.at_level(logging.INFO, "workspaces.tasks"),
        transaction.atomic(),
    ):
        counts = tick()
    total = sum(len(unwatched(task)) for task in tasks)
    assert total == 0
    assert counts["mended"] == Job.objects.count() >= 12
    for pk, live in wanted.items():
        # What was left of earlier statuses is not made anew.
        assert live_jobs(Task.objects.get(pk=pk)) <= live
    assert tick()["mended"] == 0


def test_what_is_mended_is_logged(
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: Callable[..., Any],
):
    task = publish()
    Job.objects.all().delete()
    with (
        caplog.at_level(logging.INFO, "workspaces.tasks"),
        django_capture_on_commit_callbacks(execute=True),
    ):
        tick()
    (record,) = (r for r in caplog.records if r.message == "task.mended")
    said = vars(record)
    assert (said["task_id"], said["action"], said["how"]) == (
        task.pk,
        "open_expire",
        "enqueued",
    )
    assert said["deadline"] == Job.objects.get().payload["deadline"]


@pytest.mark.parametrize("status", [Status.DEAD, Status.CANCELLED])
def test_a_job_that_was_given_up_is_retried_with_its_history(status: Status):
    task = held()
    pass_time(9 * HOUR)
    job = job_of(task, "hold_timeout")
    Attempt.objects.create(job=job, number=5, error="why")
    end(job, status)
    assert tick()["mended"] == 1
    retried = Job.objects.get(pk=job.pk)
    assert (retried.status, retried.attempts, retried.last_error) == (
        Status.PENDING,
        0,
        "why",
    )
    assert retried.attempt_set.count() == 1
    assert AuditEntry.objects.filter(
        actor="task_reconcile", action="job.retry", target=f"job:{job.pk}"
    ).exists()
    run_due_jobs()
    assert now(task).status == TaskStatus.OPEN


def test_one_that_was_cancelled_before_its_time_waits_for_it_again():
    task = publish()
    job = job_of(task, "open_expire")
    end(job, Status.CANCELLED)
    assert tick()["mended"] == 1
    run_due_jobs()
    assert live_jobs(task) == {("open_expire", now(task).open_until)}
    assert Job.objects.get().pk == job.pk


def test_one_that_has_completed_and_left_its_deadline_live_has_a_successor():
    task = publish()
    job = job_of(task, "open_expire")
    end(job, Status.COMPLETED)
    assert tick()["mended"] == 1
    assert unwatched(task) == set()
    assert job_of(task, "open_expire").pk != job.pk
    assert Job.objects.get(pk=job.pk).status == Status.COMPLETED


def test_one_that_is_running_is_left_to_its_worker():
    task = publish()
    Job.objects.update(status=Status.RUNNING, leased_by="w", lease_until=Now() + MINUTE)
    before = jobs()
    assert tick()["mended"] == 0
    assert jobs() == before
    assert unwatched(task) == set()


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_a_deadline_that_was_moved_by_hand_has_its_job(by: dt.timedelta):
    task = publish()
    Task.objects.filter(pk=task.pk).update(open_until=F("open_until") + by)
    assert unwatched(task) != set()
    assert tick()["mended"] == 1
    assert unwatched(task) == set()


def test_a_task_that_was_opened_by_hand_is_watched():
    task = publish()
    actions.cancel(task.pk, by=agent("alice"))
    Task.objects.filter(pk=task.pk).update(
        status="open", ended_at=None, open_until=Now() - HOUR
    )
    assert tick()["mended"] == 1
    run_due_jobs()
    assert now(task).status == TaskStatus.EXPIRED


def test_a_transfer_that_lost_its_job_is_watched_again():
    task = held()
    to = agent("carol").agent
    assert to is not None
    actions.offer_transfer(task.pk, by=agent("bob"), to=to)
    Job.objects.filter(type="transfer_expire").delete()
    assert tick()["mended"] == 1
    assert unwatched(task) == set()


@pytest.mark.parametrize("until", ["infinity", "-infinity", "9999-01-01Z"])
def test_a_deadline_that_nobody_could_read_is_refused_by_the_table(until: str):
    publish()
    with (
        pytest.raises(IntegrityError, match="tasks_times_readable"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE tasks SET open_until = %s", [until])
    assert tick()["failed"] == 0


def unjudged() -> tuple[Task, Job]:
    """A contest whose review is over, and the job that has died of it."""
    task = contest("bob")
    pass_and_work(10 * HOUR)
    pass_time(6 * HOUR)
    Job.objects.filter(type="review_warn").delete()
    job = job_of(task, "review_auto_accept")
    for _ in range(5):
        Job.objects.filter(pk=job.pk).update(run_at=Now())
        run_due_jobs()
    job.refresh_from_db()
    assert job.status == Status.DEAD
    Task.objects.filter(pk=task.pk).update(review_warn_at=None)
    return task, job


def test_a_contest_without_a_judge_waits_for_its_publisher(settings: Settings):
    task, job = unjudged()
    before = jobs()
    assert tick() == {"looked_at": 1, "mended": 0, "waiting": 1, "failed": 0}
    assert jobs() == before
    # Once there is a judge, it is judged.
    settings.TASKS_CONTEST_JUDGE = plugs.JUDGE
    assert tick()["mended"] == 1
    run_due_jobs()
    assert now(task).status == TaskStatus.ACCEPTED
    assert Job.objects.get(pk=job.pk).status == Status.COMPLETED


def test_what_waits_is_left_where_another_deadline_of_the_task_is_mended():
    task, job = unjudged()
    Task.objects.filter(pk=task.pk).update(review_warn_at=Now() + HOUR)
    assert tick() == {"looked_at": 1, "mended": 1, "waiting": 1, "failed": 0}
    assert {name for name, _ in live_jobs(task)} == {"review_warn"}
    assert Job.objects.get(pk=job.pk).status == Status.DEAD


def test_without_a_judge_a_missing_job_is_enqueued_and_says_why_it_fails():
    task, _ = unjudged()
    Job.objects.all().delete()
    assert tick()["mended"] == 1
    run_due_jobs()
    assert "needs a judge" in job_of(task, "review_auto_accept").last_error


def test_one_cancelled_before_the_review_is_over_is_retried_without_a_judge():
    task = contest("bob")
    pass_and_work(10 * HOUR)
    end(job_of(task, "review_auto_accept"), Status.CANCELLED)
    assert tick()["mended"] == 1
    assert tick()["waiting"] == 0


def test_what_dies_again_and_again_is_retried_ever_more_seldom():
    task = held()
    pass_time(9 * HOUR)
    job = job_of(task, "hold_timeout")

    def died(times: int, *, ago: dt.timedelta) -> dict[str, int]:
        Attempt.objects.all().delete()
        for number in range(5 * times):
            Attempt.objects.create(job=job, number=number, error="why")
        end(job, Status.DEAD)
        Job.objects.filter(pk=job.pk).update(completed_at=Now() - ago)
        return tick()

    assert died(1, ago=MINUTE)["mended"] == 1
    assert died(2, ago=29 * MINUTE)["waiting"] == 1
    assert died(2, ago=31 * MINUTE)["mended"] == 1
    assert died(3, ago=59 * MINUTE)["waiting"] == 1
    assert died(3, ago=61 * MINUTE)["mended"] == 1
    assert died(30, ago=23 * HOUR)["waiting"] == 1
    assert died(30, ago=25 * HOUR)["mended"] == 1


def test_nothing_is_begun_once_the_worker_stops():
    publish()
    Job.objects.all().delete()
    stop = threading.Event()
    stop.set()
    assert tick(stop) == {"looked_at": 0, "mended": 0, "waiting": 0, "failed": 0}
    assert not Job.objects.exists()


def test_it_stops_between_two_tasks(monkeypatch: pytest.MonkeyPatch):
    for _ in range(3):
        publish()
    Job.objects.all().delete()
    stop = threading.Event()
    mend = reconcile.mend

    def stopped_after_one(task_id: int) -> Any:
        stop.set()
        return mend(task_id)

    monkeypatch.setattr(reconcile, "mend", stopped_after_one)
    assert tick(stop)["mended"] == 1
    assert Job.objects.count() == 1


def test_a_task_that_cannot_be_mended_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    bad, good = publish(), publish()
    Job.objects.all().delete()
    locked = machine.locked

    def refused(task_id: int) -> Task:
        if task_id == bad.pk:
            raise DatabaseError("no")
        return locked(task_id)

    monkeypatch.setattr(machine, "locked", refused)
    assert tick() == {"looked_at": 2, "mended": 1, "waiting": 0, "failed": 1}
    assert unwatched(good) == set()
    (record,) = (r for r in caplog.records if r.message == "task.mending_failed")
    assert vars(record)["task_id"] == bad.pk


def test_a_job_that_the_database_refuses_counts_as_failed(
    monkeypatch: pytest.MonkeyPatch,
):
    task = publish()
    job = job_of(task, "open_expire")
    end(job, Status.DEAD)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no'; END$$"
        )
        cursor.execute(
            "CREATE TRIGGER refuse BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    assert tick() == {"looked_at": 1, "mended": 0, "waiting": 0, "failed": 1}


def test_a_task_that_is_gone_meanwhile_is_none_to_mend(
    monkeypatch: pytest.MonkeyPatch,
):
    task = publish()
    Job.objects.all().delete()
    mend = reconcile.mend

    def gone(task_id: int) -> Any:
        Task.objects.filter(pk=task.pk).delete()
        return mend(task_id)

    monkeypatch.setattr(reconcile, "mend", gone)
    assert tick() == {"looked_at": 1, "mended": 0, "waiting": 0, "failed": 0}


def test_one_that_changes_meanwhile_is_mended_as_it_is_then(
    monkeypatch: pytest.MonkeyPatch,
):
    task = publish()
    Job.objects.all().delete()
    mend = reconcile.mend

    def taken(task_id: int) -> Any:
        assert actions.take(task_id, by=agent("bob")).ok
        return mend(task_id)

    monkeypatch.setattr(reconcile, "mend", taken)
    assert tick()["mended"] == 0
    assert {name for name, _ in live_jobs(task)} == {"hold_timeout"}


@pytest.mark.django_db(transaction=True)
def test_it_waits_for_a_change_that_is_under_way_and_mends_what_that_leaves():
    task = publish()
    Job.objects.all().delete()
    counts: list[dict[str, int]] = []

    def work() -> None:
        try:
            counts.append(tick())
        finally:
            connections.close_all()

    worker = threading.Thread(target=work)
    with transaction.atomic():
        # As an action does: the row is locked, then changed, and its jobs come with the commit.
        Task.objects.select_for_update().get(pk=task.pk)
        worker.start()
        wait_until(_somebody_waits_for_a_lock, "the reconciliation at the lock")
        assert actions.take(task.pk, by=agent("bob")).ok
    worker.join(PATIENCE)
    assert counts[0]["mended"] == 0
    assert {name for name, _ in live_jobs(task)} == {"hold_timeout"}
    assert unwatched(task) == set()


def _somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        (waiting,) = cursor.fetchone()
    return bool(waiting)


def test_a_job_that_was_put_off_by_hand_is_run_now():
    task, other = publish(), publish()
    Job.objects.filter(ref_id=str(task.pk)).update(
        run_at=F("run_at") + dt.timedelta(days=365)
    )
    assert tick() == {"looked_at": 2, "mended": 1, "waiting": 0, "failed": 0}
    # Due now, it comes early, and waits for its deadline.
    run_due_jobs()
    for each in (task, other):
        assert job_of(each, "open_expire").run_at - now(each).open_until < MINUTE  # type: ignore[operator]
    assert tick()["mended"] == 0
