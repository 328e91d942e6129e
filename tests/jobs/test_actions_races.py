"""Actions against other connections that work on the same jobs and keys at the same moment."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from jobs import actions, claims, leases, outcomes
from jobs.action_result import Result
from jobs.connection import QueueConnection
from jobs.models import Job, Status
from jobs.testing import wait_until
from tests.jobs.auditing import recorded_audit
from tests.jobs.factories import JobFactory
from tests.jobs.support import (
    add,
    claim_for,
    claim_one,
    complete,
    somebody_waits_for_a_lock,
)


def retry(*jobs: Job) -> Result:
    return actions.retry([job.pk for job in jobs], actor="alice")


def cancel(*ids: uuid.UUID) -> Result:
    return actions.cancel(ids, actor="alice")


@pytest.mark.django_db(transaction=True)
def test_a_key_that_is_taken_at_the_same_moment_skips_that_job_only():
    raced = JobFactory(dead=True, unique_key="k")
    other = JobFactory(dead=True)
    inserted, go = threading.Event(), threading.Event()

    def enqueue_and_hold() -> None:
        with transaction.atomic():
            JobFactory(unique_key="k")
            inserted.set()
            go.wait(20)
        connection.close()

    with ThreadPoolExecutor(2) as threads:
        holding = threads.submit(enqueue_and_hold)
        assert inserted.wait(20)
        acting = threads.submit(_closing, lambda: retry(raced, other))
        wait_until(somebody_waits_for_a_lock, what="the retry waits for the insert")
        go.set()
        result = acting.result(20)
        holding.result(20)
    assert result.done == [other.pk]
    live = Job.objects.get(unique_key="k", status=Status.PENDING)
    assert result.skipped[0].holder == live.pk


@pytest.mark.django_db(transaction=True)
def test_a_deadlock_with_other_work_costs_no_job_its_retry():
    first, second = (JobFactory(dead=True, unique_key=key) for key in ("b", "a"))
    free = JobFactory(dead=True)
    inserted, go = threading.Event(), threading.Event()

    def take_both_keys() -> None:
        with transaction.atomic():
            JobFactory(unique_key="a")
            inserted.set()
            go.wait(20)
            JobFactory(unique_key="b")
        connection.close()

    with ThreadPoolExecutor(2) as threads:
        holding = threads.submit(take_both_keys)
        assert inserted.wait(20)
        acting = threads.submit(_closing, lambda: retry(first, second, free))
        wait_until(somebody_waits_for_a_lock, what="the retry waits for the key")
        go.set()
        result = acting.result(20)
        holding.result(20)
    assert result.done == [free.pk]
    assert {skip.target for skip in result.skipped} == {first.pk, second.pk}


@pytest.mark.django_db(transaction=True)
def test_a_job_that_completes_while_it_is_cancelled_is_completed(
    queue_connection: QueueConnection, second_connection: QueueConnection, noop: str
):
    add()
    leased = claim_one(queue_connection)
    second_connection.execute("BEGIN", [])
    complete(second_connection, leased)
    result = _while_it_waits(
        lambda: cancel(leased.id),
        then=lambda: second_connection.execute("COMMIT", []),
    )
    assert str(result).endswith("not completed ones")
    job = Job.objects.get()
    assert (job.status, job.cancel_requested_at) == (Status.COMPLETED, None)


@pytest.mark.django_db(transaction=True)
def test_a_job_that_is_given_back_while_it_is_cancelled_is_cancelled_at_once(
    queue_connection: QueueConnection, second_connection: QueueConnection, noop: str
):
    add()
    leased = claim_one(queue_connection)
    second_connection.execute("BEGIN", [])
    leases.finish(second_connection, [(leased, outcomes.NOT_BEGUN)], worker="w1")
    result = _while_it_waits(
        lambda: cancel(leased.id),
        then=lambda: second_connection.execute("COMMIT", []),
    )
    assert str(result) == "1 cancelled"
    assert Job.objects.get().status == Status.CANCELLED


@pytest.mark.django_db(transaction=True)
def test_a_job_that_is_claimed_while_it_is_cancelled_is_asked_to_stop(
    queue_connection: QueueConnection, second_connection: QueueConnection, noop: str
):
    add()
    second_connection.execute("BEGIN", [])
    leased = claim_one(second_connection)
    result = _while_it_waits(
        lambda: cancel(leased.id),
        then=lambda: second_connection.execute("COMMIT", []),
    )
    assert str(result) == "1 asked to stop: it is running on w1"
    outcome = outcomes.retry(dt.timedelta(0), error="x")
    leases.finish(queue_connection, [(leased, outcome)], worker="w1")
    assert Job.objects.get().status == Status.CANCELLED


@pytest.mark.django_db(transaction=True)
def test_a_claim_passes_over_a_job_that_is_being_cancelled(
    queue_connection: QueueConnection, noop: str
):
    (unwanted,), (other,) = add(), add()
    with transaction.atomic():
        cancel(unwanted)
        batch = claims.claim(queue_connection, claim_for())
    assert [job.id for job in batch] == [other]
    assert Job.objects.get(pk=unwanted).status == Status.CANCELLED


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("running", [True, False])
def test_of_two_operators_who_cancel_one_job_one_does(running: bool):
    job = JobFactory(running=running) if running else JobFactory()
    acted, go = threading.Event(), threading.Event()

    def cancel_and_hold() -> str:
        with transaction.atomic():
            result = cancel(job.pk)
            acted.set()
            go.wait(20)
        return str(result)

    with recorded_audit() as audited, ThreadPoolExecutor(1) as threads:
        first = threads.submit(_closing, cancel_and_hold)
        assert acted.wait(20)
        second = _while_it_waits(lambda: cancel(job.pk), then=go.set)
        told = [first.result(20), str(second)]
    assert len(audited) == 1
    if running:
        assert told[0] == "1 asked to stop: it is running on worker-1"
        assert told[1].startswith("1 asked to stop already, at ")
    else:
        assert told[0] == "1 cancelled"
        assert told[1].endswith("not cancelled ones")


@pytest.mark.django_db(transaction=True)
def test_many_running_jobs_are_never_locked_at_once(
    queue_connection: QueueConnection, second_connection: QueueConnection, noop: str
):
    """A worker that writes several in an order of its own would be in a circle of waits with whoever held them all."""
    ids = add(2)
    batch = claims.claim(queue_connection, claim_for())
    second_connection.execute("BEGIN", [])
    second_connection.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [ids[1]])

    def go_on() -> None:
        # The first one is free by now, though the second is waited for.
        second_connection.execute("SET LOCAL lock_timeout = '5s'", [])
        second_connection.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [ids[0]])
        second_connection.execute("COMMIT", [])

    result = _while_it_waits(lambda: cancel(*ids), then=go_on)
    assert [asked.target for asked in result.asked] == [job.id for job in batch]


def _while_it_waits(act: Any, *, then: Any) -> Any:
    """What ``act`` gives, which another transaction holds up until ``then`` was called."""
    with ThreadPoolExecutor(1) as threads:
        acting = threads.submit(_closing, act)
        wait_until(somebody_waits_for_a_lock, what="it waits for a lock")
        then()
        return acting.result(20)


def _closing(act: Any) -> Any:
    try:
        return act()
    finally:
        connection.close()
