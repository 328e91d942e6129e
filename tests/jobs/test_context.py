from __future__ import annotations

import datetime as dt
import threading

import pytest

from jobs.context import JobContext
from jobs.exceptions import LeaseLost
from jobs.thread import Execution
from tests.jobs.support import leased_job


def a_context(timeout: dt.timedelta | None = None) -> JobContext:
    job = leased_job()
    return JobContext(
        job_id=job.id,
        type=job.type,
        ref_id=None,
        queue=job.queue,
        attempt=1,
        max_attempts=5,
        lease_seq=1,
        enqueued_at=job.created_at,
        timeout=timeout,
    )


def test_it_names_its_job() -> None:
    job = leased_job(ref_id="7")
    context = Execution(job).context
    assert (context.job_id, context.type, context.ref_id) == (job.id, job.type, "7")
    assert (context.attempt, context.lease_seq) == (job.attempts, job.lease_seq)


def test_a_handler_learns_that_it_should_stop() -> None:
    context = a_context()
    before = context.should_stop
    context.notify_stop()
    assert (before, context.should_stop) == (False, True)
    assert not context.lease_lost
    context.check_lease()


def test_a_handler_learns_that_its_lease_is_lost() -> None:
    context = a_context()
    context.notify_lease_lost()
    assert context.should_stop
    assert context.lease_lost
    with pytest.raises(LeaseLost):
        context.check_lease()


def test_a_wait_ends_early_when_the_worker_stops() -> None:
    context = a_context()
    stopped: list[bool] = []
    thread = threading.Thread(
        target=lambda: stopped.append(context.wait(dt.timedelta(hours=1)))
    )
    thread.start()
    context.notify_stop()
    thread.join(10)
    assert stopped == [True]


def test_a_wait_that_runs_out_goes_on() -> None:
    assert a_context().wait(dt.timedelta(milliseconds=1)) is False


def test_the_time_left_is_that_of_the_timeout() -> None:
    assert a_context().remaining is None
    left = a_context(dt.timedelta(hours=1)).remaining
    assert left is not None
    assert dt.timedelta(minutes=59) < left <= dt.timedelta(hours=1)
    assert a_context(dt.timedelta(0)).remaining == dt.timedelta(0)


def test_two_threads_that_wait_are_both_woken() -> None:
    context = a_context()
    waiting = [
        threading.Thread(target=context.wait, args=[dt.timedelta(minutes=1)])
        for _ in range(2)
    ]
    for thread in waiting:
        thread.start()
    context.notify_stop()
    for thread in waiting:
        thread.join(20)
    assert not any(thread.is_alive() for thread in waiting)
