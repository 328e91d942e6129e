from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from jobs import actions, wakeup
from jobs.action_result import Result
from jobs.connection import QueueConnection
from jobs.messages import Message, read
from jobs.models import Attempt, Job, Status
from tests.jobs.auditing import recorded_audit
from tests.jobs.factories import AttemptFactory, JobFactory, ago

ACTOR = "alice"


@pytest.fixture
def audited() -> Iterator[list[dict[str, Any]]]:
    with recorded_audit() as told:
        yield told


def retry(*jobs: Job) -> Result:
    return actions.retry([job.pk for job in jobs], actor=ACTOR)


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["dead", "cancelled"])
def test_retry_makes_a_job_pending_and_due(state: str):
    job = JobFactory(**{state: True}, run_at=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    result = retry(job)
    assert (result.done, result.skipped) == ([job.pk], [])
    job.refresh_from_db()
    assert job.status == Status.PENDING
    assert job.attempts == 0
    assert job.completed_at is None
    assert job.lease_until is None
    assert job.run_at.year > 2020
    assert Job.objects.due().filter(pk=job.pk).exists()


@pytest.mark.django_db
def test_retry_keeps_the_history_and_the_number_of_the_lease():
    job = JobFactory(dead=True, lease_seq=7, last_error="ValueError: broken")
    AttemptFactory(job=job)
    retry(job)
    job.refresh_from_db()
    assert job.lease_seq == 7
    assert job.last_error == "ValueError: broken"
    assert Attempt.objects.filter(job=job).count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["pending", "running", "completed"])
def test_retry_refuses_what_is_alive_or_done(state: str):
    job = JobFactory(**({} if state == "pending" else {state: True}))
    before = Job.objects.filter(pk=job.pk).values().get()
    result = retry(job)
    assert result.done == []
    assert (
        str(result) == "0 retried, 1 skipped: only dead and cancelled jobs can be"
        f" retried, not {state} ones"
    )
    assert Job.objects.filter(pk=job.pk).values().get() == before


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["dead", "completed"])
def test_repeat_has_what_was_done_done_again(state: str, audited: list[dict[str, Any]]):
    job = JobFactory(**{state: True}, lease_seq=7)
    result = actions.repeat([job.pk], actor=ACTOR, participle="sent again")
    assert (result.done, str(result)) == ([job.pk], "1 sent again")
    job.refresh_from_db()
    assert (job.status, job.attempts, job.lease_seq) == (Status.PENDING, 0, 7)
    assert Job.objects.due().filter(pk=job.pk).exists()
    assert [(told["action"], told["data"]["status"]) for told in audited] == [
        ("job.repeat", state)
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["pending", "running", "cancelled"])
def test_repeat_refuses_what_is_alive_or_was_cancelled(state: str):
    job = JobFactory(**({} if state == "pending" else {state: True}))
    before = Job.objects.filter(pk=job.pk).values().get()
    result = actions.repeat([job.pk], actor=ACTOR)
    assert str(result) == (
        "0 repeated, 1 skipped: only dead and completed jobs can be"
        f" repeated, not {state} ones"
    )
    assert Job.objects.filter(pk=job.pk).values().get() == before


@pytest.mark.django_db
def test_retry_skips_a_job_whose_key_is_taken_and_does_the_others():
    live = JobFactory(unique_key="k")
    taken = JobFactory(dead=True, unique_key="k")
    others = [JobFactory(dead=True, unique_key=f"other-{n}") for n in range(3)]
    result = retry(taken, *others)
    assert set(result.done) == {job.pk for job in others}
    assert str(result) == f"3 retried, 1 skipped: a live job has the key (#{live.pk})"


@pytest.mark.django_db
def test_of_two_dead_jobs_with_one_key_one_is_retried():
    first, second = (JobFactory(dead=True, unique_key="k") for _ in range(2))
    result = retry(first, second)
    assert result.done == [first.pk]
    assert result.skipped[0].holder == first.pk


@pytest.mark.django_db
def test_cancel_cancels_pending_jobs():
    job = JobFactory()
    assert str(actions.cancel([job.pk], actor=ACTOR)) == "1 cancelled"
    job.refresh_from_db()
    assert job.status == Status.CANCELLED
    assert job.completed_at is not None


@pytest.mark.django_db
def test_cancel_asks_a_running_job_to_stop_and_says_where_it_runs():
    job = JobFactory(running=True, leased_by="host:1:ab")
    result = actions.cancel([JobFactory().pk, job.pk, JobFactory().pk], actor=ACTOR)
    assert str(result) == "2 cancelled, 1 asked to stop: it is running on host:1:ab"
    before = (job.lease_seq, job.lease_until, job.leased_by)
    job.refresh_from_db()
    assert job.status == Status.RUNNING
    assert job.cancel_requested_at is not None
    assert (job.lease_seq, job.lease_until, job.leased_by) == before


@pytest.mark.django_db
def test_asking_twice_changes_nothing_and_says_since_when(
    audited: list[dict[str, Any]],
):
    job = JobFactory(running=True, cancel_requested_at=ago(days=1))
    before = Job.objects.filter(pk=job.pk).values().get()
    result = actions.cancel([job.pk], actor=ACTOR)
    when = job.cancel_requested_at.strftime("%H:%M UTC on %Y-%m-%d")
    assert str(result) == (
        f"1 asked to stop already, at {when}: it is running on worker-1"
    )
    assert Job.objects.filter(pk=job.pk).values().get() == before
    assert audited == []


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["completed", "dead", "cancelled"])
def test_cancel_leaves_every_other_job_alone(state: str):
    job = JobFactory(**{state: True})
    result = actions.cancel([job.pk], actor=ACTOR)
    assert (result.done, result.asked) == ([], [])
    assert str(result) == (
        "0 cancelled, 1 skipped: only pending and running jobs can be cancelled,"
        f" not {state} ones"
    )
    job.refresh_from_db()
    assert job.status == state


@pytest.mark.django_db
def test_a_retried_job_is_not_to_be_cancelled_any_more():
    job = JobFactory(cancelled=True, cancel_requested_at=ago(minutes=1))
    retry(job)
    job.refresh_from_db()
    assert (job.status, job.cancel_requested_at) == (Status.PENDING, None)


@pytest.mark.django_db
def test_run_now_makes_a_job_due():
    job = JobFactory(later=True)
    assert str(actions.run_now([job.pk], actor=ACTOR)) == "1 made due now"
    assert Job.objects.due().filter(pk=job.pk).exists()


@pytest.mark.django_db
def test_run_now_skips_what_is_due():
    job = JobFactory()
    run_at = job.run_at
    result = actions.run_now([job.pk], actor=ACTOR)
    assert str(result) == "0 made due now, 1 skipped: it is due already"
    job.refresh_from_db()
    assert job.run_at == run_at


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["running", "completed", "dead", "cancelled"])
def test_run_now_leaves_every_other_job_alone(state: str):
    job = JobFactory(**{state: True}, run_at=dt.datetime(2100, 1, 1, tzinfo=dt.UTC))
    result = actions.run_now([job.pk], actor=ACTOR)
    assert f"only pending jobs can be made due now, not {state} ones" in str(result)


@pytest.mark.django_db
def test_each_job_is_audited_as_it_was(audited: list[dict[str, Any]]):
    job = JobFactory(dead=True, ref_id="task-1", last_error="ValueError: broken\nmore")
    retry(job)
    assert audited == [
        {
            "actor": ACTOR,
            "action": "job.retry",
            "target": f"job:{job.pk}",
            "data": {
                "type": "test.noop",
                "ref_id": "task-1",
                "status": "dead",
                "attempts": 5,
                "last_error": "ValueError: broken",
            },
            "in_transaction": True,
        }
    ]


@pytest.mark.django_db
def test_a_request_is_audited_with_the_worker_that_it_goes_to(
    audited: list[dict[str, Any]],
):
    job = JobFactory(running=True, leased_by="host:1:ab")
    actions.cancel([job.pk], actor=ACTOR)
    (told,) = audited
    assert (told["action"], told["target"]) == ("job.cancel", f"job:{job.pk}")
    assert (told["data"]["status"], told["data"]["worker"]) == ("running", "host:1:ab")


@pytest.mark.django_db
def test_every_verb_is_audited_under_its_name(audited: list[dict[str, Any]]):
    actions.cancel([JobFactory().pk], actor=ACTOR)
    actions.run_now([JobFactory(later=True).pk], actor=ACTOR)
    assert [told["action"] for told in audited] == ["job.cancel", "job.run_now"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["retry", "run_now"])
def test_the_workers_of_the_queue_are_woken(verb: str):
    job = JobFactory(
        queue="mine", **({"dead": True} if verb == "retry" else {"later": True})
    )
    with QueueConnection() as listening:
        listening.execute(f"LISTEN {wakeup.CHANNEL}", [])
        getattr(actions, verb)([job.pk], actor=ACTOR)
        (notified,) = listening.raw().notifies(timeout=10, stop_after=1)
    assert read(notified.payload).queues == ("mine",)


@pytest.mark.django_db(transaction=True)
def test_the_worker_of_a_running_job_is_told_after_the_commit():
    pending, running = JobFactory(), JobFactory(running=True, lease_seq=7)
    with QueueConnection() as listening:
        listening.execute(f"LISTEN {wakeup.CHANNEL}", [])
        with transaction.atomic():
            actions.cancel([pending.pk, running.pk], actor=ACTOR)
            assert list(listening.raw().notifies(timeout=0)) == []
        (notified,) = listening.raw().notifies(timeout=10, stop_after=1)
    assert read(notified.payload) == Message(cancelled=frozenset({(running.pk, 7)}))
