from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from jobs import hangs, registry
from jobs.context import JobContext
from jobs.events import LogEvent
from jobs.leases import LeasedJob
from jobs.models import Status
from jobs.pool import Pool
from jobs.selection import Queues
from jobs.testing import PATIENCE, wait_until
from jobs.thread import WorkerThread
from tests.jobs.support import leased_job

# A thread closes its connections when it ends.
pytestmark = pytest.mark.django_db

SECOND = dt.timedelta(seconds=1)


class Hanging:
    """A handler that hangs in a line of its own until it is let go, and then raises what it is told to."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.go = threading.Event()
        self.error: Exception | None = None
        self.contexts: list[JobContext] = []

    def __call__(self, context: JobContext, payload: Any) -> None:
        self.contexts.append(context)
        self.began.set()
        self.go.wait()  # here it hangs
        if self.error is not None:
            raise self.error


@pytest.fixture
def hanging(settings: Settings) -> Iterator[Hanging]:
    settings.JOBS_TIMEOUT_GRACE = dt.timedelta(0)
    settings.JOBS_BACKOFF_BASE = SECOND
    handler = Hanging()
    registry.job_handler("test.hang", timeout=SECOND)(lambda c, p: handler(c, p))
    yield handler
    handler.go.set()


def executing(job: LeasedJob) -> WorkerThread:
    """A thread that executes this one job, and then sees whether there is more."""
    pool = Pool(
        worker="w1",
        threads=1,
        queues=Queues(["default"]),
        lease=dt.timedelta(minutes=5),
        drain=True,
    )
    (thread,) = pool.threads
    thread._waiting.append(job)
    thread.leased_at = time.monotonic()
    thread._claim = lambda wanted: True  # type: ignore[method-assign]
    thread._flush = lambda: None  # type: ignore[method-assign]
    thread.start()
    return thread


def past_its_timeout(thread: WorkerThread, seconds: float = 12) -> None:
    """As if it had begun so long ago, and was looked at all the time."""
    execution = thread.execution
    assert execution is not None
    timeout = execution.context.timeout or dt.timedelta(0)
    execution.context.started = time.monotonic() - seconds
    execution.overdue_at = execution.context.started + timeout.total_seconds()


def test_a_handler_that_hangs_is_failed_with_the_place_where_it_hangs(
    hanging: Hanging, caplog: pytest.LogCaptureFixture
) -> None:
    job = leased_job(type="test.hang", attempts=2)
    thread = executing(job)
    assert hanging.began.wait(PATIENCE)
    past_its_timeout(thread)
    failed = hangs.fail(thread)
    assert failed is not None
    assert failed[0] is job
    outcome = failed[1]
    assert (outcome.status, outcome.refund) == (Status.PENDING, False)
    assert outcome.delay >= 2 * SECOND
    assert (
        outcome.error
        == "timed out: still running 12 s after it began, its timeout is 1 s"
    )
    assert outcome.traceback is not None
    assert "self.go.wait()  # here it hangs" in outcome.traceback
    (context,) = hanging.contexts
    assert context.lease_lost
    (record,) = [r for r in caplog.records if r.msg == LogEvent.TIMEOUT]
    assert record.levelno == logging.ERROR
    facts = vars(record)
    assert (facts["job_id"], facts["type"]) == (job.id, "test.hang")
    assert (round(facts["seconds"]), facts["timeout"]) == (12, 1.0)
    assert facts["worker_thread"] == thread.name


def test_at_the_last_attempt_its_job_is_dead(hanging: Hanging) -> None:
    thread = executing(leased_job(type="test.hang", attempts=5, max_attempts=5))
    assert hanging.began.wait(PATIENCE)
    past_its_timeout(thread)
    failed = hangs.fail(thread)
    assert failed is not None
    assert failed[1].status == Status.DEAD
    assert "timed out" in (failed[1].error or "")


@pytest.mark.parametrize("error", [None, ValueError("too late")])
def test_what_it_returns_or_raises_later_is_dropped_and_its_thread_ends(
    hanging: Hanging, error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    thread = executing(leased_job(type="test.hang"))
    assert hanging.began.wait(PATIENCE)
    past_its_timeout(thread)
    assert hangs.fail(thread) is not None
    assert thread.held() == []
    hanging.error = error
    hanging.go.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert thread.error is None
    assert not thread.done
    assert [record.msg for record in caplog.records] == [LogEvent.TIMEOUT]


def test_the_grace_is_added_to_the_timeout(
    hanging: Hanging, settings: Settings
) -> None:
    settings.JOBS_TIMEOUT_GRACE = dt.timedelta(minutes=1)
    thread = executing(leased_job(type="test.hang"))
    assert hanging.began.wait(PATIENCE)
    past_its_timeout(thread, 60)
    assert hangs.fail(thread) is None
    assert hanging.contexts[0].should_stop
    assert not hanging.contexts[0].lease_lost
    past_its_timeout(thread, 62)
    assert hangs.fail(thread) is not None


def test_the_time_for_which_the_process_was_suspended_is_no_handlers_fault(
    hanging: Hanging, settings: Settings
) -> None:
    """It has the whole grace from when its lateness is first seen."""
    settings.JOBS_TIMEOUT_GRACE = dt.timedelta(minutes=1)
    thread = executing(leased_job(type="test.hang"))
    assert hanging.began.wait(PATIENCE)
    execution = thread.execution
    assert execution is not None
    execution.context.started = time.monotonic() - 1000
    assert hangs.fail(thread) is None
    assert hangs.fail(thread) is None
    past_its_timeout(thread, 1000)
    assert hangs.fail(thread) is not None


def test_without_a_timeout_a_handler_may_go_on_for_ever(hanging: Hanging) -> None:
    registry.job_handler("test.long")(lambda context, payload: hanging(context, None))
    thread = executing(leased_job(type="test.long"))
    assert hanging.began.wait(PATIENCE)
    past_its_timeout(thread, 1e8)
    assert hangs.fail(thread) is None


def test_a_handler_that_ends_at_this_moment_decides_for_itself(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It returns while its stack is being looked at."""
    job = leased_job(type="test.hang")
    thread = executing(job)
    assert hanging.began.wait(PATIENCE)
    past_its_timeout(thread)

    def look(thread: WorkerThread) -> str:
        hanging.go.set()
        wait_until(lambda: thread.done, "the handler's own outcome")
        return "somewhere"

    monkeypatch.setattr("jobs.stacks.where", look)
    assert hangs.fail(thread) is None
    assert thread.done.jobs() == [job]
    assert caplog.records == []
    thread.join(PATIENCE)
    assert not hanging.contexts[0].lease_lost


def test_a_thread_that_executes_nothing_does_not_hang(hanging: Hanging) -> None:
    thread = executing(leased_job(type="test.hang"))
    hanging.go.set()
    thread.join(PATIENCE)
    assert hangs.fail(thread) is None
