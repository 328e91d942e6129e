from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from jobs import actions, wakeup
from jobs.action_result import Result
from jobs.connection import QueueConnection
from jobs.events import LogEvent
from jobs.identifiers import uuid7
from jobs.models import Attempt, Job, Status
from jobs.signals import operator_acted
from tests.jobs.auditing import recorded_audit
from tests.jobs.factories import AttemptFactory, JobFactory

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
def test_retry_names_what_does_not_exist_and_does_the_rest():
    job = JobFactory(dead=True)
    result = actions.retry([uuid7(), job.pk], actor=ACTOR)
    assert result.done == [job.pk]
    assert [skip.reason for skip in result.skipped] == [actions.NO_SUCH_JOB]


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
def test_a_job_that_is_named_twice_is_retried_once():
    job = JobFactory(dead=True)
    result = retry(job, job)
    assert (result.done, result.skipped) == ([job.pk], [])


@pytest.mark.django_db
def test_a_queryset_is_taken_as_it_is_filtered():
    wanted = JobFactory(dead=True, type="test.wanted")
    JobFactory(dead=True, type="test.other")
    result = actions.retry(Job.objects.filter(type="test.wanted"), actor=ACTOR)
    assert result.done == [wanted.pk]


@pytest.mark.django_db
def test_a_large_set_goes_in_batches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(actions, "BATCH", 2)
    jobs = [JobFactory(dead=True) for _ in range(5)]
    result = actions.retry(Job.objects.dead(), actor=ACTOR)
    assert result.done == [job.pk for job in jobs]
    assert not result.unfinished


@pytest.mark.django_db
def test_a_time_limit_ends_a_large_set_after_a_batch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(actions, "BATCH", 2)
    for _ in range(5):
        JobFactory(dead=True)
    result = actions.retry(Job.objects.dead(), actor=ACTOR, time_limit=0)
    assert (len(result.done), result.unfinished) == (2, True)
    assert Job.objects.dead().count() == 3


@pytest.mark.django_db
def test_cancel_cancels_pending_jobs():
    job = JobFactory()
    assert str(actions.cancel([job.pk], actor=ACTOR)) == "1 cancelled"
    job.refresh_from_db()
    assert job.status == Status.CANCELLED
    assert job.completed_at is not None


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["running", "completed", "dead", "cancelled"])
def test_cancel_leaves_every_other_job_alone(state: str):
    job = JobFactory(**{state: True})
    result = actions.cancel([job.pk], actor=ACTOR)
    assert result.done == []
    assert f"not {state} ones" in str(result)
    job.refresh_from_db()
    assert job.status == state


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
def test_every_verb_is_audited_under_its_name(audited: list[dict[str, Any]]):
    actions.cancel([JobFactory().pk], actor=ACTOR)
    actions.run_now([JobFactory(later=True).pk], actor=ACTOR)
    assert [told["action"] for told in audited] == ["job.cancel", "job.run_now"]


@pytest.mark.django_db
def test_what_is_skipped_is_not_audited(audited: list[dict[str, Any]]):
    retry(JobFactory())
    assert audited == []


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_audited_does_not_happen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(actions, "BATCH", 1)
    first, second = JobFactory(dead=True), JobFactory(dead=True)

    def refuse(*, target: str, **_: Any) -> None:
        if target == f"job:{second.pk}":
            raise RuntimeError("no room for the audit")

    operator_acted.connect(refuse)
    try:
        with pytest.raises(RuntimeError, match="no room"):
            actions.retry(Job.objects.dead(), actor=ACTOR)
    finally:
        operator_acted.disconnect(refuse)
    statuses = dict(Job.objects.values_list("pk", "status"))
    assert statuses == {first.pk: Status.PENDING, second.pk: Status.DEAD}


@pytest.mark.django_db(transaction=True)
def test_it_is_logged_after_the_commit(caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    job = JobFactory(dead=True)
    with transaction.atomic():
        retry(job)
        assert LogEvent.OPERATOR_ACTION not in caplog.messages
    assert LogEvent.OPERATOR_ACTION in caplog.messages


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
    assert notified.payload == "mine"
