from __future__ import annotations

import datetime as dt
import logging
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection
from pytest_django import Settings

from jobs import registry
from jobs.connection import QueueConnection
from jobs.context import JobContext
from jobs.enqueue import NewJob, enqueue, enqueue_many
from jobs.events import LogEvent
from jobs.models import Job, Status, WorkerProcess
from jobs.process import (
    EXIT_CLEAN,
    EXIT_PART_FAILED,
    EXIT_SHUTDOWN_TIMEOUT,
    Worker,
    worker_name,
)
from jobs.recycling import Limits
from jobs.testing import PATIENCE, wait_until

pytestmark = pytest.mark.django_db(transaction=True)


class Running:
    """A worker in a thread of its own, and its exit status once it has ended."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.status: int | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        self.status = self.worker.run()

    def end(self) -> int | None:
        self.worker.stop()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        return self.status


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def start(**options: Any) -> Running:
        running = Running(Worker(**options))
        made.append(running)
        return running

    yield start
    for running in made:
        running.end()


@pytest.fixture(autouse=True)
def no_runners() -> None:
    registry._runners.clear()


def completed(count: int) -> Callable[[], bool]:
    return lambda: Job.objects.filter(status=Status.COMPLETED).count() == count


def test_a_name_is_of_its_host_and_process_and_no_other(settings: Settings) -> None:
    settings.ACW_HOST = "here"
    assert re.fullmatch(rf"here:{os.getpid()}:[0-9a-f]{{8}}", worker_name())
    assert worker_name() != worker_name()


def test_it_works_until_it_is_stopped_and_signs_off(
    start: Callable[..., Running], noop: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="jobs"):
        running = start(threads=2)
        enqueue_many([NewJob(type=noop) for _ in range(50)])
        wait_until(completed(50), "all completed")
        wait_until(
            lambda: WorkerProcess.objects.count() == 1, "the process is announced"
        )
        assert running.end() == EXIT_CLEAN
    assert WorkerProcess.objects.count() == 0
    events = [record.msg for record in caplog.records]
    assert events[0] == LogEvent.MODULE_STARTED
    assert events[-2:] == [LogEvent.MODULE_STOPPING, LogEvent.MODULE_STOPPED]


def test_draining_ends_when_nothing_is_due(noop: str) -> None:
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    enqueue_many([NewJob(type=noop) for _ in range(300)])
    enqueue(noop, run_at=later)
    assert Worker(threads=2, drain=True).run() == EXIT_CLEAN
    assert Job.objects.count_by_status() == {Status.COMPLETED: 300, Status.PENDING: 1}


def test_draining_includes_what_the_jobs_themselves_enqueue(noop: str) -> None:
    def fan_out(context: JobContext, payload: Any) -> None:
        enqueue_many([NewJob(type=noop) for _ in range(10)])

    registry.job_handler("test.fan_out")(fan_out)
    enqueue_many([NewJob(type="test.fan_out") for _ in range(5)])
    assert Worker(threads=2, drain=True).run() == EXIT_CLEAN
    assert Job.objects.count_by_status() == {Status.COMPLETED: 55}


def test_only_the_named_queues_are_served(noop: str) -> None:
    enqueue(noop, queue="a")
    enqueue(noop, queue="b")
    Worker(threads=1, queues=["a"], drain=True).run()
    assert Job.objects.get(queue="a").status == Status.COMPLETED
    assert Job.objects.get(queue="b").status == Status.PENDING


def test_a_handler_that_does_not_stop_within_the_grace_is_reported(
    start: Callable[..., Running], settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.JOBS_SHUTDOWN_GRACE = dt.timedelta(milliseconds=50)
    began, go = threading.Event(), threading.Event()

    def stubborn(context: JobContext, payload: Any) -> None:
        began.set()
        go.wait(PATIENCE)

    registry.job_handler("test.stubborn")(stubborn)
    job = enqueue("test.stubborn")
    running = start(threads=1)
    assert began.wait(PATIENCE)
    assert running.end() == EXIT_SHUTDOWN_TIMEOUT
    go.set()
    (record,) = [r for r in caplog.records if r.msg == LogEvent.MODULE_SHUTDOWN_TIMEOUT]
    assert record.jobs == [f"test.stubborn {job.id}"]  # type: ignore[attr-defined]
    job.refresh_from_db()
    assert (job.status, job.leased_by) == (Status.PENDING, None)
    thread = running.worker.pool.threads[0]
    thread.join(PATIENCE)
    job.refresh_from_db()
    assert job.status == Status.PENDING


def test_a_part_that_fails_ends_the_process_for_its_supervisor(
    start: Callable[..., Running],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(self: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr("jobs.heartbeat.Heartbeat.beat", broken)
    running = start(threads=1)
    running.thread.join(PATIENCE)
    assert running.status == EXIT_PART_FAILED
    assert LogEvent.MODULE_PART_FAILED in [record.msg for record in caplog.records]


def test_cut_connections_are_survived(
    start: Callable[..., Running], noop: str, queue_connection: QueueConnection
) -> None:
    running = start(threads=2)
    enqueue(noop)
    wait_until(completed(1), "the first")
    queue_connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() "
        # A schema that tests share is dropped when the session that holds its lock ends.
        "AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')",
        [],
    )

    def enqueued() -> bool:
        try:
            enqueue(noop)
        except Exception:  # the test's own connection was cut as well
            connection.close()
            return False
        return True

    wait_until(enqueued, "enqueued on a new connection")
    wait_until(completed(2), "the second")
    assert running.end() == EXIT_CLEAN


def test_a_signal_stops_it_and_the_handlers_of_before_are_back(noop: str) -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[Any] = []

    def stop_me(context: JobContext, payload: Any) -> None:
        seen.append(signal.getsignal(signal.SIGTERM))
        os.kill(os.getpid(), signal.SIGTERM)

    registry.job_handler("test.stop_me")(stop_me)
    enqueue("test.stop_me")
    assert Worker(threads=1).run() == EXIT_CLEAN
    assert seen != [before]
    assert signal.getsignal(signal.SIGTERM) is before


def test_without_a_database_it_still_stops(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: object) -> None:
        raise psycopg.OperationalError("no route")

    monkeypatch.setattr("jobs.connection.QueueConnection.raw", away)
    running = start(threads=1)
    assert running.end() == EXIT_CLEAN


class TestStalls:
    """A part that lives and makes no progress."""

    @pytest.fixture(autouse=True)
    def soon(self, settings: Settings) -> None:
        settings.JOBS_STALL_AFTER = dt.timedelta(milliseconds=800)

    @pytest.fixture
    def go(self) -> Iterator[threading.Event]:
        go = threading.Event()
        yield go
        go.set()

    def stalled(self, caplog: pytest.LogCaptureFixture) -> list[str]:
        return [r.part for r in caplog.records if r.msg == LogEvent.MODULE_STALLED]  # type: ignore[attr-defined]

    @pytest.mark.parametrize(
        ("what", "part"),
        [
            ("jobs.heartbeat.Heartbeat.beat", "acw-heartbeat"),
            ("jobs.periodic.Periodic.start_due_ticks", "acw-periodic"),
            ("jobs.listener.Listener._listen", "acw-listener"),
            ("jobs.watchdog.Watchdog.look", "acw-watchdog"),
        ],
    )
    def test_a_part_that_hangs_ends_the_process_in_order(
        self,
        start: Callable[..., Running],
        go: threading.Event,
        noop: str,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        what: str,
        part: str,
    ) -> None:
        def hang(*args: object) -> float:
            go.wait(PATIENCE)
            return 1.0

        monkeypatch.setattr(what, hang)
        running = start(threads=1)
        running.thread.join(PATIENCE)
        assert running.status == EXIT_PART_FAILED
        assert self.stalled(caplog) == [part]
        assert not WorkerProcess.objects.exists()

    def test_where_the_main_thread_hangs_another_shuts_down_and_ends_the_process(
        self,
        start: Callable[..., Running],
        go: threading.Event,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        hanging, exited = threading.Event(), threading.Event()
        statuses: list[int] = []

        def hang(self: object) -> None:
            hanging.set()
            go.wait(PATIENCE)

        def exit_now(status: int) -> None:
            statuses.append(status)
            exited.set()

        began = threading.Event()

        def polite(context: JobContext, payload: Any) -> None:
            began.set()
            context.wait(dt.timedelta(minutes=1))

        registry.job_handler("test.polite")(polite)
        enqueue("test.polite")
        monkeypatch.setattr("jobs.pool.Pool.tend", hang)
        monkeypatch.setattr("jobs.process.exit_now", exit_now)
        running = start(threads=1)
        assert began.wait(PATIENCE)
        assert hanging.wait(PATIENCE)
        assert exited.wait(PATIENCE)
        assert statuses == [EXIT_PART_FAILED]
        assert self.stalled(caplog) == ["acw-main"]
        assert not WorkerProcess.objects.exists()
        assert not Job.objects.filter(status=Status.RUNNING).exists()
        go.set()
        running.thread.join(PATIENCE)
        assert running.status == EXIT_PART_FAILED


def test_a_lock_on_the_table_does_not_keep_a_stop_from_its_end(
    start: Callable[..., Running],
    settings: Settings,
    queue_connection: QueueConnection,
) -> None:
    settings.JOBS_SHUTDOWN_GRACE = dt.timedelta(milliseconds=100)
    began, go = threading.Event(), threading.Event()

    def quick(context: JobContext, payload: Any) -> None:
        began.set()
        go.wait(PATIENCE)

    registry.job_handler("test.quick")(quick)
    enqueue("test.quick")
    running = start(threads=1)
    assert began.wait(PATIENCE)
    wait_until(WorkerProcess.objects.exists, "announced")
    with queue_connection.raw().transaction():
        queue_connection.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE", [])
        go.set()
        assert running.end() == EXIT_SHUTDOWN_TIMEOUT
    assert not WorkerProcess.objects.exists()
    for thread in [*running.worker.pool.threads, *threading.enumerate()]:
        if thread.name.startswith(("acw-worker", "acw-flush")):
            thread.join(PATIENCE)


@pytest.fixture
def hanging(settings: Settings) -> Iterator[threading.Semaphore]:
    """A type of job that hangs past its timeout, and when each began."""
    settings.JOBS_TIMEOUT_GRACE = dt.timedelta(0)
    settings.JOBS_BACKOFF_BASE = dt.timedelta(hours=1)
    began, go = threading.Semaphore(0), threading.Event()

    def hang(context: JobContext, payload: Any) -> None:
        began.release()
        go.wait()

    registry.job_handler("test.hang", timeout=dt.timedelta(milliseconds=100))(hang)
    yield began
    go.set()


def test_a_process_that_loses_too_many_threads_ends_for_its_supervisor(
    start: Callable[..., Running],
    hanging: threading.Semaphore,
    noop: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    running = start(threads=1)
    first = enqueue("test.hang")
    assert hanging.acquire(timeout=PATIENCE)
    enqueue(noop)
    wait_until(completed(1), "the thread in its place works")
    second = enqueue("test.hang")
    running.thread.join(PATIENCE)
    assert running.status == EXIT_PART_FAILED
    (record,) = [r for r in caplog.records if r.msg == LogEvent.MODULE_THREADS_LOST]
    assert record.levelno == logging.CRITICAL
    facts = vars(record)
    assert (facts["hanging"], facts["threads"]) == (2, 1)
    assert "job.timeout" in facts["advice"]
    # Their jobs are failed and not given back: nothing of the shutdown concerns them.
    for job in (first, second):
        job.refresh_from_db()
        assert (job.status, job.attempts) == (Status.PENDING, 1)
        assert (job.last_error or "").startswith("timed out")
    events = [r.msg for r in caplog.records]
    assert events.count(LogEvent.TIMEOUT) == 2
    assert LogEvent.MODULE_SHUTDOWN_TIMEOUT not in events
    assert running.worker.pool.crew.is_alive()


def test_a_thread_that_hangs_does_not_hold_up_the_stop(
    start: Callable[..., Running], hanging: threading.Semaphore
) -> None:
    running = start(threads=1)
    job = enqueue("test.hang")
    wait_until(
        lambda: Job.objects.filter(pk=job.pk, status=Status.PENDING, attempts=1),
        "it is failed",
    )
    assert running.end() == EXIT_CLEAN
    assert running.worker.pool.crew.is_alive()


@pytest.mark.parametrize("drain", [False, True])
def test_at_its_limit_it_stops_as_if_it_was_told_to(
    noop: str, drain: bool, caplog: pytest.LogCaptureFixture
) -> None:
    enqueue_many([NewJob(type=noop) for _ in range(3_000)])
    worker = Worker(threads=2, drain=drain, limits=Limits(max_jobs=20))
    with caplog.at_level(logging.INFO, logger="jobs"):
        assert worker.run() == EXIT_CLEAN
    (record,) = [r for r in caplog.records if r.msg == LogEvent.MODULE_RECYCLING]
    facts = vars(record)
    assert (facts["reason"], facts["max_jobs"]) == ("max_jobs", 20)
    counts = Job.objects.count_by_status()
    assert counts.keys() == {Status.COMPLETED, Status.PENDING}
    assert facts["executed"] >= 20
    assert counts[Status.COMPLETED] >= 20
    assert set(Job.objects.pending().values_list("attempts", flat=True)) == {0}


def test_memory_is_looked_at_while_it_works(
    start: Callable[..., Running],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sizes = iter([100, 100])
    monkeypatch.setattr("jobs.recycling.resident_memory", lambda: next(sizes, 101))
    with caplog.at_level(logging.INFO, logger="jobs"):
        running = start(threads=1, limits=Limits(max_rss=100))
        running.thread.join(PATIENCE)
    assert running.status == EXIT_CLEAN
    (record,) = [r for r in caplog.records if r.msg == LogEvent.MODULE_RECYCLING]
    assert (vars(record)["reason"], vars(record)["rss"]) == ("max_rss", 101)
