from __future__ import annotations

import datetime as dt
import threading
from typing import Any

import pytest

from jobs import actions
from jobs.context import JobContext
from jobs.enqueue import enqueue
from jobs.exceptions import Permanent, Snooze
from jobs.models import Attempt, Job, Status
from jobs.registry import job_handler
from jobs.selection import host_queue
from jobs.testing import run_due_jobs, wait_until
from tests.jobs.factories import JobFactory

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def echo() -> None:
    """A type whose handler notes what it is given, or raises it."""
    SEEN.clear()

    @job_handler("test.echo")
    def handler(context: JobContext, payload: Any) -> None:
        SEEN.append(payload)
        if payload.get("permanent"):
            raise Permanent("no use")
        if payload.get("broken"):
            raise ValueError("broken")


@pytest.mark.django_db
@pytest.mark.parametrize("priority", [None, 0])
def test_what_is_due_is_executed(priority: Any):
    job = enqueue("test.echo", {"a": 1}, priority=priority)
    (done,) = run_due_jobs()
    assert SEEN == [{"a": 1}]
    assert (done.pk, done.status, done.attempts) == (job.pk, Status.COMPLETED, 1)


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_the_queue_has_its_own_connection():
    enqueue("test.echo")
    assert [job.status for job in run_due_jobs()] == [Status.COMPLETED]


@pytest.mark.django_db
def test_it_leases_for_as_long_as_a_worker_would():
    lasts = []

    @job_handler("test.brief", lease=dt.timedelta(seconds=60))
    def handler(context: JobContext, payload: Any) -> None:
        job = Job.objects.get(pk=context.job_id)
        assert job.lease_until
        assert job.started_at
        lasts.append(job.lease_until - job.started_at)

    enqueue("test.brief")
    run_due_jobs()
    assert lasts == [dt.timedelta(seconds=60)]


@pytest.mark.django_db
def test_what_is_not_due_waits():
    enqueue("test.echo", run_at=dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
    assert run_due_jobs() == []
    assert SEEN == []


@pytest.mark.django_db
def test_what_became_due_within_the_transaction_is_executed():
    job = JobFactory(type="test.echo", dead=True)
    actions.retry([job.pk], actor="alice")
    assert [done.status for done in run_due_jobs()] == [Status.COMPLETED]


@pytest.mark.django_db
def test_a_failure_is_written_as_a_worker_writes_it():
    enqueue("test.echo", {"broken": True})
    (job,) = run_due_jobs()
    assert (job.status, job.last_error) == (Status.PENDING, "ValueError: broken")
    assert Attempt.objects.get().number == 1


@pytest.mark.django_db
def test_a_job_can_die():
    enqueue("test.echo", {"permanent": True})
    (job,) = run_due_jobs()
    assert (job.status, job.last_error) == (Status.DEAD, "Permanent: no use")


@pytest.mark.django_db
def test_jobs_that_jobs_enqueue_are_executed_too():
    @job_handler("test.parent")
    def parent(context: JobContext, payload: Any) -> None:
        enqueue("test.echo", {"from": "parent"}, queue="newly-found")

    enqueue("test.parent")
    assert [job.type for job in run_due_jobs()] == ["test.parent", "test.echo"]


@pytest.mark.django_db
def test_queues_can_be_named_and_other_hosts_are_left_alone():
    enqueue("test.echo", queue="one")
    enqueue("test.echo", queue=host_queue("elsewhere"))
    assert run_due_jobs(queues=["two"]) == []
    assert [job.queue for job in run_due_jobs()] == ["one"]


@pytest.mark.django_db
def test_jobs_that_come_again_at_once_do_not_go_on_for_ever():
    @job_handler("test.again")
    def again(context: JobContext, payload: Any) -> None:
        raise Snooze(dt.timedelta(0))

    enqueue("test.again")
    with pytest.raises(
        AssertionError, match=r"still due after 5 executions: test\.again"
    ):
        run_due_jobs(at_most=5)


@pytest.mark.django_db
def test_a_job_that_deletes_itself_is_not_returned():
    @job_handler("test.gone")
    def gone(context: JobContext, payload: Any) -> None:
        Job.objects.all().delete()

    enqueue("test.gone")
    assert run_due_jobs() == []


def test_wait_until_returns_what_came_true():
    found: list[int] = []
    timer = threading.Timer(0.05, lambda: found.append(7))
    timer.start()
    assert wait_until(lambda: found) == [7]
    timer.join()


def test_wait_until_says_what_never_came():
    with pytest.raises(AssertionError, match=r"not within 0\.02 s: the moon"):
        wait_until(lambda: False, "the moon", timeout=0.02)
