from __future__ import annotations

import datetime as dt

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from jobs import claims
from jobs.connection import QueueConnection
from jobs.enqueue import NewJob, enqueue, enqueue_many
from jobs.heartbeat import Heartbeat, alive_within, beat_interval
from jobs.models import Job, WorkerProcess
from jobs.pool import Pool
from jobs.selection import Queues
from tests.jobs.support import claim_for

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def pool(transactional_db: None, noop: str) -> Pool:
    return Pool(worker="w1", threads=1, queues=Queues(), lease=5 * MINUTE)


@pytest.fixture
def heartbeat(pool: Pool) -> Heartbeat:
    return Heartbeat(pool)


@pytest.fixture(autouse=True)
def closed(heartbeat: Heartbeat) -> object:
    yield
    heartbeat._connection.close()


def hold(pool: Pool, connection: QueueConnection) -> None:
    pool.threads[0]._waiting.extend(claims.claim(connection, claim_for(lease=MINUTE)))


def test_a_beat_extends_what_is_held(
    pool: Pool, heartbeat: Heartbeat, queue_connection: QueueConnection
) -> None:
    enqueue_many([NewJob(type="test.noop") for _ in range(3)])
    hold(pool, queue_connection)
    heartbeat.beat()
    assert Job.objects.filter(lease_until__gt=Now() + 4 * MINUTE).count() == 3


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
