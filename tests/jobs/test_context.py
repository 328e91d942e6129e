from __future__ import annotations

import datetime as dt
import threading
import time

import pytest

from jobs.context import JobContext
from jobs.exceptions import Cancelled, LeaseLost
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


def test_a_handler_learns_that_its_job_is_to_be_cancelled() -> None:
    context = a_context()
    context.check_cancelled()
    before = (context.cancel_requested, context.should_stop)
    context.notify_cancel()
    assert before == (False, False)
    assert (context.cancel_requested, context.should_stop) == (True, True)
    assert not context.lease_lost
    with pytest.raises(Cancelled, match="attempt 1"):
        context.check_cancelled()


def test_a_wait_ends_early_when_the_job_is_to_be_cancelled() -> None:
    context = a_context()
    stopped: list[bool] = []
    thread = threading.Thread(
        target=lambda: stopped.append(context.wait(dt.timedelta(hours=1)))
    )
    thread.start()
    context.notify_cancel()
    thread.join(10)
    assert stopped == [True]


def started_ago(seconds: float, *, timeout: float) -> JobContext:
    context = a_context(dt.timedelta(seconds=timeout))
    context.started = time.monotonic() - seconds
    return context


def test_past_its_timeout_a_handler_should_stop() -> None:
    before, after = started_ago(10, timeout=3600), started_ago(10, timeout=9)
    assert (before.timed_out, before.should_stop) == (False, False)
    assert (after.timed_out, after.should_stop) == (True, True)
    # Which is no news of the lease: what it writes now still counts.
    assert not after.lease_lost
    after.check_lease()


def test_without_a_timeout_time_is_never_over() -> None:
    context = a_context()
    context.started = time.monotonic() - 1e9
    assert not context.timed_out
    assert not context.should_stop


def test_a_wait_ends_at_the_deadline() -> None:
    context = a_context(dt.timedelta(milliseconds=20))
    waited: list[bool] = []
    thread = threading.Thread(
        target=lambda: waited.append(context.wait(dt.timedelta(days=1))), daemon=True
    )
    thread.start()
    thread.join(20)
    assert waited == [True]
    assert context.timed_out


def test_a_wait_that_ends_before_the_deadline_goes_on() -> None:
    context = a_context(dt.timedelta(hours=1))
    assert context.wait(dt.timedelta(milliseconds=1)) is False


def test_past_the_deadline_nothing_is_waited_for() -> None:
    assert started_ago(10, timeout=9).wait(dt.timedelta.max) is True


def test_the_longest_wait_can_be_waited() -> None:
    context = a_context()
    thread = threading.Thread(target=context.wait, args=[dt.timedelta.max])
    thread.start()
    context.notify_stop()
    thread.join(20)
    assert not thread.is_alive()
