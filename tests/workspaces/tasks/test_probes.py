from __future__ import annotations

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from jobs.doctor import Finding, Level, probe_names
from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from tests.jobs.factories import WorkerProcessFactory
from tests.workspaces.tasks.market import (
    HOUR,
    MINUTE,
    contest,
    held,
    pass_and_work,
    pass_time,
    publish,
)
from workspaces.tasks import probes
from workspaces.tasks.models import Task

pytestmark = pytest.mark.django_db


def only() -> Finding:
    (finding,) = probes.tasks()
    return finding


def late(count: int = 1) -> list[Task]:
    """Tasks whose deadline was over an hour ago."""
    tasks = [publish() for _ in range(count)]
    pass_time(11 * HOUR)
    return tasks


def test_the_doctor_asks_it():
    assert "tasks" in probe_names()


def test_a_market_without_late_deadlines_is_well():
    held()
    publish()
    pass_time(8 * HOUR)
    assert (only().level, only().message) == (Level.OK, "no task is overdue")


def test_without_a_worker_it_says_so():
    late(2)
    finding = only()
    assert finding.level is Level.ERROR
    assert finding.message.startswith(
        "2 deadlines are over, and no worker is alive to act on them, such as open_expire of task "
    )
    assert "manage.py runjobs" in finding.advice


def test_with_a_worker_they_wait():
    WorkerProcessFactory()
    late()
    finding = only()
    assert finding.level is Level.WARNING
    assert "their jobs wait for a worker or run" in finding.message
    assert f"(job {Job.objects.get().pk})" in finding.message


def test_missing_jobs_are_named_with_what_mends_them():
    WorkerProcessFactory()
    (task,) = late()
    Job.objects.all().delete()
    finding = only()
    assert finding.level is Level.ERROR
    assert "their jobs are missing" in finding.message
    assert f"open_expire of task {task.pk}, since" in finding.message
    assert "manage.py runners run task_reconcile" in finding.advice


def test_so_are_those_that_have_completed_without_effect():
    late()
    Job.objects.update(status=Status.COMPLETED, completed_at=Now())
    assert "their jobs are missing" in only().message


@pytest.mark.parametrize("status", [Status.DEAD, Status.CANCELLED])
def test_jobs_that_were_given_up_are_named_with_their_error(status: Status):
    late()
    Job.objects.update(
        status=status, completed_at=Now(), last_error="ValueError: no\nmore"
    )
    finding = only()
    assert finding.level is Level.ERROR
    assert "have died or were cancelled" in finding.message
    assert finding.message.endswith(f"(job {Job.objects.get().pk}: ValueError: no)")
    assert "manage.py jobs retry" in finding.advice


def test_jobs_that_are_tried_again_are_a_warning():
    WorkerProcessFactory()
    late()
    Job.objects.update(attempts=2, last_error="ValueError: no")
    finding = only()
    assert finding.level is Level.WARNING
    assert "are tried again" in finding.message


@pytest.mark.parametrize("attempts", [1, 5])
def test_a_contest_without_a_judge_waits_for_its_publisher(attempts: int):
    WorkerProcessFactory()
    contest("bob")
    pass_and_work(10 * HOUR)
    pass_and_work(6 * HOUR + 2 * MINUTE)
    for _ in range(attempts - 1):
        Job.objects.filter(type="review_auto_accept").update(run_at=Now())
        run_due_jobs()
    finding = only()
    assert finding.level is Level.WARNING
    assert finding.message.startswith("1 contests wait for their publishers")
    assert "needs a judge" in finding.message
    assert "TASKS_CONTEST_JUDGE" in finding.advice


def test_each_reason_is_a_finding_of_its_own():
    WorkerProcessFactory()
    one, *_ = late(3)
    Job.objects.filter(ref_id=str(one.pk)).delete()
    missing, waiting = probes.tasks()
    assert missing.message.startswith(
        "1 deadlines are over, and their jobs are missing"
    )
    assert waiting.message.startswith("2 deadlines are over, and their jobs wait")


def test_deadlines_of_a_late_task_that_are_not_over_are_no_finding():
    WorkerProcessFactory()
    held(checkpoint_every=HOUR)
    pass_time(2 * HOUR)
    assert only().message.startswith("2 deadlines")  # the warning and the miss


def test_where_there_are_many_it_says_or_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(probes, "LOOKED_AT", 2)
    late(3)
    assert only().message.startswith("2 or more deadlines are over")


def test_what_is_plugged_in_and_cannot_be_called_is_an_error(settings: Settings):
    settings.TASKS_ARBITER = "no.such.arbiter"
    broken, well = probes.tasks()
    assert broken.level is Level.ERROR
    assert broken.message.startswith("TASKS_ARBITER=no.such.arbiter: it cannot be")
    assert "restart the workers" in broken.advice
    assert well.level is Level.OK
