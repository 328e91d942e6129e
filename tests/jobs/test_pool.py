from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.utils import timezone
from pytest_django import Settings

from jobs.connection import QueueConnection
from jobs.context import JobContext
from jobs.enqueue import NewJob, enqueue, enqueue_many
from jobs.models import Attempt, Job, Status
from jobs.pool import Pool
from jobs.registry import job_handler
from jobs.selection import Queues
from jobs.testing import PATIENCE, wait_until
from tests.jobs.support import leased_job

pytestmark = pytest.mark.django_db(transaction=True)


class Gate:
    """A handler that says when it began and waits until it is let go, or told to stop."""

    def __init__(self, *, stops: bool = True) -> None:
        self.began = threading.Semaphore(0)
        self.go = threading.Event()
        self.stops = stops
        self.contexts: list[JobContext] = []

    def __call__(self, context: JobContext, payload: Any) -> None:
        self.contexts.append(context)
        self.began.release()
        while not self.go.wait(0.01):
            if self.stops and context.should_stop:
                return


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    job_handler("test.gate")(lambda context, payload: gate(context, payload))
    yield gate
    gate.go.set()


@pytest.fixture
def pools() -> Iterator[list[Pool]]:
    made: list[Pool] = []
    yield made
    for pool in made:
        pool.stop()
        for execution in pool.running():
            execution.context.notify_stop()
        if any(thread.ident is not None for thread in pool.threads):
            assert pool.join(_soon())
        wait_until(lambda: not pool.crew.is_alive(), "its written-off threads ended")  # noqa: B023 (awaited here)
        pool.close()


def _soon() -> float:
    return time.monotonic() + PATIENCE


def a_pool(
    pools: list[Pool],
    *,
    threads: int = 1,
    start: bool = True,
    max_jobs: int | None = None,
) -> Pool:
    pool = Pool(
        worker=f"w{len(pools)}",
        threads=threads,
        queues=Queues(["default"]),
        lease=dt.timedelta(minutes=5),
        max_jobs=max_jobs,
    )
    pools.append(pool)
    if start:
        pool.start()
    return pool


def test_new_work_is_found_at_a_wake_up_without_waiting_for_the_poll(
    pools: list[Pool], noop: str, settings: Settings
) -> None:
    settings.JOBS_POLL_INTERVAL = dt.timedelta(hours=1)
    pool = a_pool(pools)
    enqueue(noop)
    pool.wake()
    wait_until(
        lambda: Job.objects.filter(status=Status.COMPLETED).exists(), "completed"
    )


def test_new_work_is_found_by_the_poll_where_no_wake_up_arrives(
    pools: list[Pool], noop: str, settings: Settings
) -> None:
    settings.JOBS_POLL_INTERVAL = dt.timedelta(milliseconds=20)
    a_pool(pools)
    enqueue(noop)
    wait_until(
        lambda: Job.objects.filter(status=Status.COMPLETED).exists(), "completed"
    )


def test_a_wake_up_between_claim_and_wait_is_not_missed(
    pools: list[Pool], settings: Settings
) -> None:
    settings.JOBS_POLL_INTERVAL = dt.timedelta(hours=1)
    pool = a_pool(pools, start=False)
    generation = pool.generation
    pool.wake()
    waiter = threading.Thread(target=pool.wait_for_work, args=[generation])
    waiter.start()
    waiter.join(PATIENCE)
    assert not waiter.is_alive()


def test_what_waits_behind_a_slow_job_is_taken_over_by_an_idle_thread(
    pools: list[Pool], gate: Gate, noop: str, settings: Settings
) -> None:
    settings.JOBS_POLL_INTERVAL = dt.timedelta(milliseconds=20)
    pool = a_pool(pools, threads=2, start=False)
    # Both look quick, so one thread takes them all, and then the first turns out slow.
    for name in ("test.gate", noop):
        pool.estimates.record(name, "default", 0.0001)
    enqueue("test.gate")
    enqueue_many([NewJob(type=noop) for _ in range(20)])
    pool.start()
    assert gate.began.acquire(timeout=PATIENCE)
    wait_until(
        lambda: Job.objects.filter(status=Status.COMPLETED).count() == 20,
        "the quick ones done",
    )
    assert Job.objects.running().get().type == "test.gate"


def test_where_no_thread_is_idle_it_goes_back_to_the_table(
    pools: list[Pool], gate: Gate, noop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.pool.STUCK_AFTER", 0.0)
    pool = a_pool(pools, start=False)
    for name in ("test.gate", noop):
        pool.estimates.record(name, "default", 0.0001)
    first = enqueue(noop)
    enqueue("test.gate")
    enqueue_many([NewJob(type=noop) for _ in range(20)])
    pool.start()
    assert gate.began.acquire(timeout=PATIENCE)
    pool.tend()
    assert Job.objects.pending().count() == 20
    assert set(Job.objects.pending().values_list("attempts", "leased_by")) == {
        (0, None)
    }
    # And what was done before the slow one is on record.
    first.refresh_from_db()
    assert first.status == Status.COMPLETED


def test_a_stop_gives_back_what_was_not_begun_and_tells_what_runs(
    pools: list[Pool], gate: Gate, noop: str
) -> None:
    pool = a_pool(pools, start=False)
    for name in ("test.gate", noop):
        pool.estimates.record(name, "default", 0.0001)
    running = enqueue("test.gate")
    enqueue_many([NewJob(type=noop) for _ in range(20)])
    pool.start()
    assert gate.began.acquire(timeout=PATIENCE)
    pool.stop()
    pool.flush()
    assert pool.join(_soon())
    running.refresh_from_db()
    assert running.status == Status.COMPLETED
    assert Job.objects.pending().count() == 20
    assert set(Job.objects.pending().values_list("attempts", flat=True)) == {0}
    assert Attempt.objects.count() == 0


def test_a_handler_that_does_not_stop_is_abandoned_and_writes_nothing_more(
    pools: list[Pool], gate: Gate, settings: Settings
) -> None:
    settings.JOBS_SHUTDOWN_GRACE = dt.timedelta(0)
    gate.stops = False
    pool = a_pool(pools)
    job = enqueue("test.gate")
    pool.wake()
    assert gate.began.acquire(timeout=PATIENCE)
    pool.stop()
    assert not pool.join(0)
    assert [job.id for job in pool.abandon()] == [job.id]
    pool.flush()
    job.refresh_from_db()
    assert (job.status, job.attempts, job.leased_by) == (Status.PENDING, 0, None)
    assert Attempt.objects.get().error.startswith("interrupted")
    assert gate.contexts[0].lease_lost
    gate.go.set()
    assert pool.join(_soon())
    job.refresh_from_db()
    assert job.status == Status.PENDING


def test_everything_it_holds_is_named_for_the_heartbeat(
    pools: list[Pool], gate: Gate, noop: str
) -> None:
    pool = a_pool(pools, start=False)
    for name in ("test.gate", noop):
        pool.estimates.record(name, "default", 0.0001)
    ids = {
        enqueue("test.gate").id,
        *enqueue_many([NewJob(type=noop) for _ in range(5)]),
    }
    pool.start()
    assert gate.began.acquire(timeout=PATIENCE)
    assert {job.id for job in pool.held()} == ids


def test_a_lost_lease_reaches_the_handlers_context(
    pools: list[Pool], gate: Gate
) -> None:
    pool = a_pool(pools)
    job = enqueue("test.gate")
    pool.wake()
    assert gate.began.acquire(timeout=PATIENCE)
    pool.extended(_soon(), {(job.id, 1)})
    assert gate.contexts[0].lease_lost


def test_a_type_that_is_registered_later_has_no_lease_of_its_own(
    pools: list[Pool],
) -> None:
    """The heartbeat was not told to keep up with it."""
    minute = dt.timedelta(minutes=1)
    job_handler("test.early", lease=minute)(lambda context, payload: None)
    pool = a_pool(pools, start=False)
    job_handler("test.late", lease=minute)(lambda context, payload: None)
    wanted = pool.claim_wanted()
    assert {"test.early", "test.late"} <= set(wanted.costs)
    assert wanted.leases is pool.leases
    lasts = [wanted.leases.seconds(f"test.{name}") for name in ("early", "late")]
    assert lasts == [60, 300]


def test_types_that_nobody_knows_fail_in_the_end(
    pools: list[Pool], noop: str, settings: Settings
) -> None:
    settings.JOBS_UNKNOWN_TYPE_GRACE = dt.timedelta(minutes=10)
    job = enqueue(noop, run_at=timezone.now() - dt.timedelta(hours=1))
    Job.objects.update(type="test.newer")
    pool = a_pool(pools, start=False)
    pool._unknown_types_due = 0.0
    pool.tend()
    job.refresh_from_db()
    assert (job.status, job.attempts) == (Status.PENDING, 1)
    assert job.last_error == f"Unhandled job kind: test.newer, id: {job.id}"
    assert job.run_at > timezone.now()


def test_a_thread_with_nothing_to_spare_is_not_robbed(pools: list[Pool]) -> None:
    pool = a_pool(pools, threads=2, start=False)
    idle, other = pool.threads
    other._waiting.append(leased_job())
    assert pool.take_over(idle) is None
    other._waiting.clear()


def test_what_cannot_be_given_back_now_is_held_until_it_can(
    pools: list[Pool], gate: Gate, noop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.pool.STUCK_AFTER", 0.0)
    pool = a_pool(pools, start=False)
    for name in ("test.gate", noop):
        pool.estimates.record(name, "default", 0.0001)
    enqueue("test.gate")
    waiting = set(enqueue_many([NewJob(type=noop) for _ in range(5)]))
    pool.start()
    assert gate.began.acquire(timeout=PATIENCE)
    with monkeypatch.context() as patched:
        patched.setattr(
            "jobs.leases.finish", _raising(psycopg.OperationalError("gone"))
        )
        with pytest.raises(psycopg.OperationalError):
            pool.tend()
    assert waiting <= {job.id for job in pool.held()}
    assert pool.has_unwritten()
    pool.tend()
    assert set(Job.objects.pending().values_list("id", flat=True)) == waiting
    assert not pool.has_unwritten()


def _raising(error: Exception) -> Callable[..., None]:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    return fail


def test_a_write_that_is_blocked_does_not_keep_the_heartbeat_from_looking(
    pools: list[Pool], gate: Gate, queue_connection: QueueConnection
) -> None:
    """As when an operator's transaction has the row."""
    pool = a_pool(pools)
    job = enqueue("test.gate")
    pool.wake()
    assert gate.began.acquire(timeout=PATIENCE)
    queue_connection.execute("BEGIN", [])
    queue_connection.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", [job.id])
    gate.go.set()
    wait_until(lambda: pool.threads[0].done, "the job is done and waits to be written")
    assert [held.id for held in pool.held()] == [job.id]
    queue_connection.execute("COMMIT", [])
    wait_until(
        lambda: Job.objects.filter(status=Status.COMPLETED).exists(), "it is written"
    )


@pytest.mark.parametrize(
    ("count", "seconds", "woken"),
    [
        (2, 0.00001, False),  # little work, and there was no more of it
        (16, 0.00001, True),  # all that was asked for: there may be more
        (3, 0.006, True),  # worth sharing
        (1, 2.0, True),  # a slow job, behind which the batch was cut off
    ],
)
def test_a_claim_wakes_another_thread_where_there_may_be_work_for_it(
    pools: list[Pool], noop: str, count: int, seconds: float, woken: bool
) -> None:
    pool = a_pool(pools, start=False)
    pool.estimates.record(noop, "default", seconds)
    # As for a queue of quick jobs, among which a slow one may be.
    pool.estimates.record("test.other", "default", 0.00001)
    pool.estimates._queues["default"] = 0.00001
    wanted = pool.claim_wanted()
    before = pool.generation
    pool.claimed(wanted, [leased_job() for _ in range(count)], 0.001)
    assert (pool.generation != before) is woken


def test_what_is_given_back_wakes_a_thread_for_it(
    pools: list[Pool], gate: Gate, noop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.pool.STUCK_AFTER", 0.0)
    pool = a_pool(pools, start=False)
    for name in ("test.gate", noop):
        pool.estimates.record(name, "default", 0.0001)
    enqueue("test.gate")
    enqueue_many([NewJob(type=noop) for _ in range(3)])
    pool.start()
    assert gate.began.acquire(timeout=PATIENCE)
    before = pool.generation
    pool.tend()
    assert pool.generation != before


@pytest.fixture
def hanging(gate: Gate, settings: Settings) -> Gate:
    """A handler that goes on past its timeout."""
    settings.JOBS_TIMEOUT_GRACE = dt.timedelta(0)
    gate.stops = False
    job_handler("test.hang", timeout=dt.timedelta(minutes=1))(
        lambda context, payload: gate(context, payload)
    )
    return gate


def past_the_timeout(pool: Pool) -> None:
    """As if the handlers under way had begun an hour ago."""
    for execution in pool.running():
        execution.context.started = time.monotonic() - 3600


def hang(pool: Pool, gate: Gate) -> Job:
    """A job whose handler hangs."""
    job = enqueue("test.hang")
    pool.wake()
    assert gate.began.acquire(timeout=PATIENCE)
    past_the_timeout(pool)
    return job


def as_it_is(job: Job) -> tuple[str, int, str | None]:
    job.refresh_from_db()
    return job.status, job.attempts, job.leased_by


def test_a_handler_that_hangs_costs_its_job_an_attempt_and_the_pool_no_thread(
    pools: list[Pool], hanging: Gate, noop: str
) -> None:
    pool = a_pool(pools)
    (lost,) = pool.threads
    job = hang(pool, hanging)
    after = enqueue(noop)
    pool.tend()
    assert as_it_is(job) == (Status.PENDING, 1, None)
    assert job.run_at > timezone.now()
    assert (job.last_error or "").startswith("timed out: still running 3600 s after")
    attempt = Attempt.objects.get()
    assert (attempt.number, attempt.error) == (1, job.last_error)
    assert "self.go.wait(0.01)" in attempt.traceback
    wait_until(lambda: as_it_is(after)[0] == Status.COMPLETED, "the next job")
    # It comes back, ends itself, and what it says counts no more.
    hanging.go.set()
    lost.join(PATIENCE)
    assert not lost.is_alive()
    assert lost not in pool.threads
    assert as_it_is(job) == (Status.PENDING, 1, None)
    assert Attempt.objects.count() == 1


def test_what_was_done_before_the_job_that_hangs_is_written_and_what_waits_behind_it_given_back(
    pools: list[Pool], hanging: Gate, noop: str
) -> None:
    pool = a_pool(pools, start=False)
    for name in ("test.hang", noop):
        pool.estimates.record(name, "default", 0.0001)
    before = enqueue(noop)
    job = enqueue("test.hang")
    behind = enqueue_many([NewJob(type="test.later") for _ in range(3)])
    pool.start()
    assert hanging.began.acquire(timeout=PATIENCE)
    past_the_timeout(pool)
    pool.stopping.set()  # nobody takes up what is given back
    pool.tend()
    assert as_it_is(before) == (Status.COMPLETED, 1, None)
    assert as_it_is(job) == (Status.PENDING, 1, None)
    released = Job.objects.filter(pk__in=behind).values_list("status", "attempts")
    assert set(released) == {(Status.PENDING, 0)}


@pytest.fixture(autouse=True)
def later() -> None:
    job_handler("test.later")(lambda context, payload: None)


def test_a_job_that_hangs_in_its_last_attempt_is_dead(
    pools: list[Pool], hanging: Gate
) -> None:
    pool = a_pool(pools)
    job = enqueue("test.hang", max_attempts=1)
    pool.wake()
    assert hanging.began.acquire(timeout=PATIENCE)
    past_the_timeout(pool)
    pool.tend()
    assert as_it_is(job) == (Status.DEAD, 1, None)


def test_while_the_database_is_away_the_failure_is_held_and_the_thread_replaced(
    pools: list[Pool], hanging: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = a_pool(pools)
    lost = pool.threads
    job = hang(pool, hanging)
    with monkeypatch.context() as patched:
        patched.setattr(
            "jobs.leases.finish", _raising(psycopg.OperationalError("gone"))
        )
        with pytest.raises(psycopg.OperationalError):
            pool.tend()
    assert pool.threads != lost
    assert [held.id for held in pool.held()] == [job.id]
    assert pool.has_unwritten()
    pool.tend()
    assert as_it_is(job) == (Status.PENDING, 1, None)
    assert not pool.has_unwritten()


def test_nothing_is_written_of_a_job_that_hangs_and_has_passed_on(
    pools: list[Pool], hanging: Gate
) -> None:
    pool = a_pool(pools)
    job = hang(pool, hanging)
    Job.objects.filter(pk=job.pk).update(lease_seq=2, leased_by="w-other", attempts=2)
    pool.tend()
    assert as_it_is(job) == (Status.RUNNING, 2, "w-other")
    assert Attempt.objects.count() == 0
    assert pool.crew.hanging() == 1


def test_a_shutdown_does_not_wait_for_a_thread_that_was_written_off(
    pools: list[Pool], hanging: Gate
) -> None:
    pool = a_pool(pools, threads=2)
    hang(pool, hanging)
    pool.tend()
    pool.stop()
    assert pool.join(time.monotonic() + 3600)
    assert pool.crew.hanging() == 1
    assert pool.abandon() == []
    pool.flush()
    assert not pool.has_unwritten()


def test_a_handler_that_turns_out_to_hang_during_the_shutdown_is_failed(
    pools: list[Pool], hanging: Gate
) -> None:
    """Rather than given back as interrupted, to hang elsewhere without using up an attempt."""
    pool = a_pool(pools)
    job = hang(pool, hanging)
    pool.stop()
    assert pool.join(time.monotonic() + 3600)
    assert pool.threads == []
    pool.flush()
    assert as_it_is(job) == (Status.PENDING, 1, None)


def test_a_handler_that_ends_while_it_is_being_abandoned_decides_for_itself(
    pools: list[Pool], gate: Gate
) -> None:
    pool = a_pool(pools)
    (thread,) = pool.threads
    job = enqueue("test.gate")
    pool.wake()
    assert gate.began.acquire(timeout=PATIENCE)
    execution = thread.execution
    gate.go.set()
    wait_until(lambda: as_it_is(job)[0] == Status.COMPLETED, "completed")
    assert execution is not None
    assert not thread.take_from(execution)
    assert pool.abandon() == []


def test_after_so_many_jobs_it_claims_no_more(pools: list[Pool], noop: str) -> None:
    pool = a_pool(pools, threads=2, start=False, max_jobs=50)
    enqueue_many([NewJob(type=noop) for _ in range(3_000)])
    pool.start()
    wait_until(pool.has_done_enough, "it has done enough")
    pool.stop()
    assert pool.join(_soon())
    pool.flush()
    counts = Job.objects.count_by_status()
    assert counts.keys() == {Status.COMPLETED, Status.PENDING}
    # A batch is 500 at most, and each thread is at one.
    assert 50 <= counts[Status.COMPLETED] <= 50 + 2 * 500
    assert set(Job.objects.pending().values_list("attempts", flat=True)) == {0}
