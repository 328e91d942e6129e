from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from typing import Any
from unittest import mock

import psycopg
import pytest

from jobs import claims, leases
from jobs.context import JobContext
from jobs.enqueue import NewJob, enqueue, enqueue_many
from jobs.events import LogEvent
from jobs.journal import Slot
from jobs.models import Job, Status
from jobs.outcomes import COMPLETED
from jobs.pool import Pool
from jobs.registry import job_handler
from jobs.selection import Queues
from jobs.testing import PATIENCE, wait_until
from jobs.thread import WorkerThread
from tests.jobs.support import leased_job

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def thread(noop: str) -> WorkerThread:
    pool = Pool(
        worker="w1",
        threads=1,
        queues=Queues(["default"]),
        lease=dt.timedelta(minutes=5),
        drain=True,
    )
    return pool.threads[0]


def test_it_works_until_nothing_is_due(thread: WorkerThread, noop: str) -> None:
    enqueue_many([NewJob(type=noop) for _ in range(500)])
    thread.start()
    thread.join(60)
    assert thread.error is None
    assert Job.objects.count_by_status() == {Status.COMPLETED: 500}
    assert not thread.has_work()


def test_a_failure_of_the_machinery_is_kept_for_the_process(
    thread: WorkerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = RuntimeError("broken")

    def broken(*args: object) -> None:
        raise error

    monkeypatch.setattr("jobs.claims.claim", broken)
    thread.start()
    thread.join(60)
    assert thread.error is error


def test_what_waits_can_be_taken_from_the_far_end(thread: WorkerThread) -> None:
    jobs = [leased_job() for _ in range(3)]
    thread._waiting.extend(jobs)
    assert thread.pop_last_waiting() is jobs[2]
    assert thread.pop_all_waiting() == [jobs[1], jobs[0]]
    assert thread.pop_last_waiting() is None


def test_a_job_that_waited_longer_than_its_lease_is_not_begun(
    thread: WorkerThread, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a SIGSTOP: another worker may hold it by now."""
    called: list[int] = []
    job_handler("test.count")(lambda context, payload: called.append(1))
    thread._waiting.append(leased_job(type="test.count"))
    thread.leased_at = time.monotonic() - 301
    with caplog.at_level(logging.WARNING, logger="jobs"):
        thread._run_batch()
    assert called == []
    assert [record.msg for record in caplog.records] == [LogEvent.LEASE_LOST]


def test_each_job_is_trusted_for_the_length_of_its_own_lease(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After two minutes of suspension, the leases of one minute may be others', and those of five are not."""
    called: list[str] = []

    def note(context: JobContext, payload: Any) -> None:
        called.append(context.queue)

    for name, lease in (
        ("test.default", None),
        ("test.brief", MINUTE),
        ("test.long", 9 * MINUTE),
    ):
        job_handler(name, lease=lease)(note)
    queues = Queues(["default"])
    pool = Pool(worker="w1", threads=1, queues=queues, lease=5 * MINUTE)
    thread = pool.threads[0]
    monkeypatch.setattr(thread, "_flush_is_due", lambda: False)

    def run(minutes: int) -> list[str]:
        called.clear()
        thread._waiting.extend(
            leased_job(type=f"test.{name}", queue=name)
            for name in ("brief", "default", "long", "brief")
        )
        thread.leased_at = time.monotonic() - minutes * 60
        thread._run_batch()
        return called.copy()

    with caplog.at_level(logging.WARNING, logger="jobs"):
        assert run(0) == ["brief", "default", "long", "brief"]
        assert caplog.records == []
        assert run(2) == ["default", "long"]
        assert run(6) == ["long"]
        assert run(10) == []
    lost = [(record.msg, vars(record)["type"]) for record in caplog.records]
    assert lost[:2] == [(LogEvent.LEASE_LOST, "test.brief")] * 2
    assert len(lost) == 2 + 3 + 4


def test_what_a_beat_has_extended_is_trusted_from_its_beginning_on(
    thread: WorkerThread,
) -> None:
    claimed_at = time.monotonic()
    thread.leased_at = claimed_at
    thread.extended(claimed_at - 1, set())
    assert thread.leased_at == claimed_at
    thread.extended(claimed_at + 1, set())
    assert thread.leased_at == claimed_at + 1


def test_lost_leases_are_dropped_before_they_begin(thread: WorkerThread) -> None:
    kept, lost = leased_job(), leased_job()
    thread._waiting.extend([kept, lost])
    thread.extended(time.monotonic() + 60, {lost.key})
    assert thread.held() == [kept]


def test_outcomes_are_held_while_the_database_is_away_and_written_once_it_is_back(
    thread: WorkerThread, noop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter(range(3))
    really_complete = leases.complete

    def complete(*args: object) -> object:
        if next(failures, None) is not None:
            raise psycopg.OperationalError("gone")
        return really_complete(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(leases, "complete", complete)
    enqueue_many([NewJob(type=noop) for _ in range(3)])
    thread.start()
    thread.join(60)
    wait_until(lambda: not thread.is_alive(), "the thread ended")
    assert Job.objects.count_by_status() == {Status.COMPLETED: 3}
    assert set(Job.objects.values_list("lease_seq", flat=True)) == {1}


def test_the_news_of_an_older_lease_do_not_touch_a_newer_one(
    thread: WorkerThread,
) -> None:
    """The same job may have been given back and claimed again since the heartbeat looked."""
    job = leased_job(lease_seq=2)
    thread._waiting.append(job)
    thread.extended(time.monotonic() + 60, {(job.id, 1)})
    assert thread.held() == [job]


def test_a_claim_that_failed_is_not_taken_for_an_empty_queue(
    thread: WorkerThread, noop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter(range(3))
    really_claim = claims.claim

    def claim(*args: object) -> object:
        if next(failures, None) is not None:
            raise psycopg.OperationalError("gone")
        return really_claim(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(claims, "claim", claim)
    enqueue_many([NewJob(type=noop) for _ in range(5)])
    thread.start()
    thread.join(60)
    assert Job.objects.count_by_status() == {Status.COMPLETED: 5}


class Slots:
    """Stands in for the journal of the process."""

    def __init__(self) -> None:
        self.slot_ = mock.Mock(spec=Slot)
        self.given_back = 0

    def slot(self) -> Slot:
        slot: Slot = self.slot_
        return slot

    def give_back(self, slot: Slot) -> None:
        self.given_back += 1


@pytest.mark.parametrize("unwritten", [False, True])
def test_a_thread_whose_execution_was_taken_away_touches_nothing_more_and_ends(
    thread: WorkerThread, unwritten: bool
) -> None:
    """What it did before is left to whoever took it; until that is written, its notes in the journal are needed."""
    began, go = threading.Event(), threading.Event()

    def wait(context: JobContext, payload: Any) -> None:
        began.set()
        go.wait(PATIENCE)

    slots = Slots()
    thread._pool.journal = slots  # type: ignore[assignment]
    job_handler("test.wait")(wait)
    job = enqueue("test.wait")
    thread.start()
    assert began.wait(PATIENCE)
    before = leased_job()
    if unwritten:
        thread.done.add(before, COMPLETED)
    waiting = leased_job()
    thread._waiting.append(waiting)
    execution = thread.execution
    assert execution is not None
    assert thread.take_from(execution)
    assert not thread.take_from(execution)
    go.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert thread.error is None
    assert thread.held() == [waiting, *([before] if unwritten else [])]
    # What was decided in its place may not be written yet; whoever has written it says so.
    assert slots.given_back == 0
    thread.forget()
    assert slots.given_back == 1
    job.refresh_from_db()
    assert (job.status, job.lease_seq) == (Status.RUNNING, 1)


def test_when_the_pool_has_done_enough_it_waits_for_the_stop(
    thread: WorkerThread, noop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = thread._pool
    monkeypatch.setattr(pool, "has_done_enough", lambda: True)
    enqueue(noop)
    thread.start()
    wait_until(lambda: thread.executed() == 1, "the first job")
    later = enqueue(noop)
    thread.join(0.05)
    assert thread.is_alive()
    pool.stop()
    thread.join(PATIENCE)
    assert Job.objects.count_by_status() == {Status.COMPLETED: 1, Status.PENDING: 1}
    later.refresh_from_db()
    assert later.lease_seq == 0


def test_a_backlog_that_nobody_here_can_do_is_not_read_by_each_claim(
    thread: WorkerThread, noop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a full claim that took long has found nothing in, the next ones pass over."""
    monkeypatch.setattr("jobs.thread.SLOW", 0.0)
    monkeypatch.setattr("jobs.floors.SLOW", 0.0)
    enqueue(noop)
    Job.objects.create(type="test.of_a_newer_version", priority=0)
    claimed = []
    real = claims.claim

    def watched(connection: Any, wanted: claims.Claim) -> list[Any]:
        claimed.append(wanted)
        return real(connection, wanted)

    monkeypatch.setattr("jobs.claims.claim", watched)
    thread.start()
    thread.join(60)
    assert Job.objects.count_by_status() == {Status.COMPLETED: 1, Status.PENDING: 1}
    before = Job.objects.get(priority=0).run_at
    assert [wanted.floors for wanted in claimed if not wanted.floors]
    assert thread._pool.floors._barren[("default", 0)] > before - dt.timedelta(
        seconds=2
    )


def test_a_batch_begins_with_a_journal_that_has_forgotten_the_one_before(
    thread: WorkerThread, noop: str
) -> None:
    """Or it would be full, and tell nothing any more, after some batches."""
    slots = Slots()
    thread._pool.journal = slots  # type: ignore[assignment]
    enqueue_many([NewJob(type=noop) for _ in range(50)])
    thread.start()
    thread.join(60)
    said = [call[0] for call in slots.slot_.method_calls]
    assert said.count("begin") == said.count("done") == 50
    # Each is noted before its handler is called, and its end after that.
    assert [word for word in said if word != "reset"] == ["begin", "done"] * 50
    assert said[0] == "reset"
    assert said.count("reset") > 1
