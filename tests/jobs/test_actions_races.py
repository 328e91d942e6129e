"""Actions against other connections that work on the same jobs and keys at the same moment."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from jobs import actions
from jobs.action_result import Result
from jobs.models import Job, Status
from jobs.testing import wait_until
from tests.jobs.factories import JobFactory


def retry(*jobs: Job) -> Result:
    return actions.retry([job.pk for job in jobs], actor="alice")


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
        wait_until(_somebody_waits_for_a_lock, what="the retry waits for the insert")
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
        wait_until(_somebody_waits_for_a_lock, what="the retry waits for the key")
        go.set()
        result = acting.result(20)
        holding.result(20)
    assert result.done == [free.pk]
    assert {skip.target for skip in result.skipped} == {first.pk, second.pk}


def _closing(act: Any) -> Any:
    try:
        return act()
    finally:
        connection.close()


def _somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        waits: bool = cursor.fetchone()[0]
    return waits
