from __future__ import annotations

import datetime as dt
import time

import psycopg
import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from jobs import claims, registry
from jobs.bounded import NoAnswerError
from jobs.connection import QueueConnection
from jobs.enqueue import NewJob, enqueue, enqueue_many
from jobs.heartbeat import Heartbeat, alive_within, beat_interval
from jobs.models import Job, Status, WorkerProcess
from jobs.pool import Pool
from jobs.presence import Presence
from jobs.registry import job_handler
from jobs.selection import Queues
from jobs.testing import PATIENCE, wait_until
from tests.jobs.support import claim_for, one_waiting

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def pool(transactional_db: None, noop: str) -> Pool:
    return Pool(worker="w1", threads=1, queues=Queues(), lease=5 * MINUTE)


@pytest.fixture
def heartbeat(pool: Pool) -> Heartbeat:
    return Heartbeat(pool)


@pytest.fixture(autouse=True)
def closed(pool: Pool, heartbeat: Heartbeat) -> object:
    yield
    heartbeat._connection.close()
    pool.close()


def hold(pool: Pool, connection: QueueConnection) -> None:
    pool.threads[0]._waiting.extend(claims.claim(connection, claim_for(lease=MINUTE)))


def test_a_beat_extends_what_is_held(
    pool: Pool, heartbeat: Heartbeat, queue_connection: QueueConnection
) -> None:
    enqueue_many([NewJob(type="test.noop") for _ in range(3)])
    hold(pool, queue_connection)
    heartbeat.beat()
    assert Job.objects.filter(lease_until__gt=Now() + 4 * MINUTE).count() == 3


def test_a_beat_extends_each_by_the_length_of_its_type(
    noop: str, queue_connection: QueueConnection
) -> None:
    job_handler("test.brief", lease=MINUTE)(lambda context, payload: None)
    pool = Pool(worker="w1", threads=1, queues=Queues(), lease=5 * MINUTE)
    enqueue_many([NewJob(type=name) for name in (noop, "test.brief")])
    wanted = claim_for(types=(noop, "test.brief"), lease=2 * MINUTE)
    pool.threads[0]._waiting.extend(claims.claim(queue_connection, wanted))
    heartbeat = Heartbeat(pool)
    began = time.monotonic()
    heartbeat.beat()
    heartbeat._connection.close()
    pool.close()
    left = {
        job.type: (job.lease_until - job.started_at) // MINUTE
        for job in Job.objects.running()
        if job.lease_until and job.started_at
    }
    assert left == {noop: 5, "test.brief": 1}
    assert began <= pool.threads[0].leased_at <= time.monotonic()


@pytest.mark.parametrize(
    ("own", "seconds"), [(None, 20), (MINUTE, 12), (MINUTE * 10, 20)], ids=str
)
def test_it_beats_often_enough_for_the_shortest_lease(
    own: dt.timedelta | None, seconds: int, db: None
) -> None:
    registry._job_types.clear()
    job_handler("test.own", lease=own)(lambda context, payload: None)
    pool = Pool(worker="w1", threads=1, queues=Queues(), lease=5 * MINUTE)
    heartbeat = Heartbeat(pool)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        heartbeat.stopping.set()

    heartbeat.wait = wait  # type: ignore[method-assign]
    heartbeat.work()
    assert waits == [seconds]


def test_a_shorter_lease_of_a_type_has_nobody_taken_for_dead_sooner(
    settings: Settings,
) -> None:
    """Whoever asks may know other types than the worker that it asks about."""
    settings.JOBS_JOB_REAPER_LEASE_TIMEOUT = 5 * MINUTE
    job_handler("test.brief", lease=MINUTE)(lambda context, payload: None)
    assert alive_within() == MINUTE


def test_a_beat_drops_what_was_lost(
    pool: Pool, heartbeat: Heartbeat, queue_connection: QueueConnection
) -> None:
    enqueue_many([NewJob(type="test.noop") for _ in range(2)])
    hold(pool, queue_connection)
    lost = pool.held()[0]
    Job.objects.filter(pk=lost.id).update(lease_seq=99)
    heartbeat.beat()
    assert lost not in pool.held()
    assert len(pool.held()) == 1


def test_a_beat_announces_the_process_and_again_where_its_row_is_gone(
    pool: Pool, heartbeat: Heartbeat
) -> None:
    heartbeat.beat()
    first = WorkerProcess.objects.get()
    assert (first.name, first.threads, first.stopping) == ("w1", 1, False)
    assert "test.noop" in first.types
    assert "default" in first.queues
    WorkerProcess.objects.all().delete()
    heartbeat.beat()
    heartbeat.beat()
    assert WorkerProcess.objects.count() == 1
    assert WorkerProcess.objects.alive(alive_within()).exists()


def test_a_beat_finds_queues_that_nobody_announced(
    pool: Pool, heartbeat: Heartbeat
) -> None:
    enqueue("test.noop", queue="reports")
    enqueue("test.noop", queue="host:elsewhere")
    heartbeat.beat()
    assert "reports" in pool.queues.names()
    assert "host:elsewhere" not in pool.queues.names()


def test_a_lease_sees_several_beats(settings: Settings) -> None:
    settings.JOBS_JOB_REAPER_LEASE_TIMEOUT = 5 * MINUTE
    assert beat_interval(dt.timedelta(seconds=5)) == dt.timedelta(seconds=1)
    assert beat_interval(dt.timedelta(days=1)) == dt.timedelta(seconds=20)
    assert alive_within() == dt.timedelta(seconds=60)


def test_a_beat_gives_back_what_is_to_be_cancelled_and_has_not_begun(
    pool: Pool, heartbeat: Heartbeat, queue_connection: QueueConnection
) -> None:
    enqueue_many([NewJob(type="test.noop") for _ in range(2)])
    hold(pool, queue_connection)
    unwanted, wanted = pool.held()
    Job.objects.filter(pk=unwanted.id).update(cancel_requested_at=Now())
    heartbeat.beat()
    pool.flush()
    assert pool.held() == [wanted]
    job = Job.objects.get(pk=unwanted.id)
    assert (job.status, job.attempts) == (Status.CANCELLED, 0)


def test_a_beat_tells_the_handler_that_its_job_is_to_be_cancelled(
    pool: Pool, heartbeat: Heartbeat
) -> None:
    with one_waiting(pool) as context:
        heartbeat.beat()
        before = context.should_stop
        Job.objects.update(cancel_requested_at=Now())
        heartbeat.beat()
        wait_until(
            lambda: Job.objects.get().status == Status.CANCELLED, "it is cancelled"
        )
    assert not before
    assert Job.objects.get().last_error.startswith(
        "cancelled by an operator while it ran: Cancelled: "
    )


def test_who_waits_for_a_lock_on_the_jobs_is_not_lost(
    pool: Pool,
    heartbeat: Heartbeat,
    queue_connection: QueueConnection,
    second_connection: QueueConnection,
    settings: Settings,
) -> None:
    enqueue("test.noop")
    hold(pool, queue_connection)
    settings.JOBS_STALL_AFTER = dt.timedelta(milliseconds=200)
    with second_connection.raw().transaction():
        second_connection.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE", [])
        with pytest.raises(NoAnswerError):
            heartbeat.beat()
    assert WorkerProcess.objects.alive(alive_within()).exists()


def test_a_try_in_an_outage_is_progress(
    heartbeat: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: object) -> None:
        raise psycopg.OperationalError("no route")

    monkeypatch.setattr("jobs.connection.QueueConnection.raw", away)
    heartbeat.start()
    wait_until(lambda: heartbeat.progress.count > 5, "several tries")
    heartbeat.stop()
    heartbeat.join(PATIENCE)
    assert heartbeat.error is None


def test_what_has_stalled_is_told_with_each_beat(pool: Pool) -> None:
    presence = Presence(pool)
    presence.stalled = ("acw-listener",)
    heartbeat = Heartbeat(pool, presence)
    heartbeat.beat()
    heartbeat._connection.close()
    assert WorkerProcess.objects.get().stalled == ["acw-listener"]
