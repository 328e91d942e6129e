from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from jobs import listener as listener_module
from jobs import wakeup
from jobs.connection import QueueConnection
from jobs.enqueue import enqueue
from jobs.listener import Listener
from jobs.models import Job, Status
from jobs.pool import Pool
from jobs.selection import Queues
from jobs.testing import PATIENCE, wait_until

LISTENERS = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND query LIKE 'LISTEN %%' AND pid <> pg_backend_pid()
"""


@pytest.fixture
def pool(transactional_db: None) -> Pool:
    return Pool(
        worker="w1",
        threads=1,
        queues=Queues(["default"]),
        lease=dt.timedelta(minutes=5),
    )


@pytest.fixture
def listener(pool: Pool) -> Iterator[Listener]:
    listener = Listener(pool)
    listener.start()
    yield listener
    listener.stop()
    listener.join(PATIENCE)
    assert listener.error is None


def generation_moves(pool: Pool, before: int) -> None:
    wait_until(lambda: pool.generation > before, "the pool was woken")


def listeners(connection: QueueConnection) -> list[int]:
    return [pid for (pid,) in connection.execute(LISTENERS, [])]


def test_the_pool_looks_at_once_when_it_begins_to_listen(
    pool: Pool, listener: Listener
) -> None:
    generation_moves(pool, 0)


def test_a_notification_wakes_the_pool(
    pool: Pool, listener: Listener, queue_connection: QueueConnection
) -> None:
    generation_moves(pool, 0)
    before = pool.generation
    queue_connection.execute("SELECT pg_notify(%s, 'default')", [wakeup.CHANNEL])
    generation_moves(pool, before)


def test_news_of_other_queues_wakes_nobody(
    pool: Pool, listener: Listener, queue_connection: QueueConnection
) -> None:
    generation_moves(pool, 0)
    before = pool.generation
    for message in ("other", "probe:of-another-process", ""):
        queue_connection.execute("SELECT pg_notify(%s, %s)", [wakeup.CHANNEL, message])
    # The last, for all, is heard after the others: one wake-up for three messages.
    generation_moves(pool, before)
    assert pool.generation == before + 1


def test_a_cut_connection_is_replaced_and_the_pool_looks_again(
    pool: Pool, listener: Listener, queue_connection: QueueConnection
) -> None:
    generation_moves(pool, 0)
    (first,) = listeners(queue_connection)
    before = pool.generation
    queue_connection.execute("SELECT pg_terminate_backend(%s)", [first])
    generation_moves(pool, before)
    assert listeners(queue_connection) != [first]


def test_a_listener_that_hears_nothing_of_itself_connects_anew(
    pool: Pool,
    listener: Listener,
    queue_connection: QueueConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generation_moves(pool, 0)
    (first,) = listeners(queue_connection)
    monkeypatch.setattr(listener_module, "PROBE_EVERY", 0.0)
    monkeypatch.setattr(listener_module, "PROBE_ANSWER_WITHIN", 0.0)
    monkeypatch.setattr(listener_module, "_WAIT", 0.01)
    wait_until(
        lambda: listeners(queue_connection) != [first], "another connection listens"
    )


def test_a_listener_that_hears_itself_stays(
    pool: Pool,
    listener: Listener,
    queue_connection: QueueConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generation_moves(pool, 0)
    (first,) = listeners(queue_connection)
    queue_connection.execute(f"LISTEN {wakeup.CHANNEL}", [])
    monkeypatch.setattr(listener_module, "PROBE_EVERY", 0.01)
    monkeypatch.setattr(listener_module, "_WAIT", 0.01)
    probes = [
        n.payload
        for n in queue_connection.raw().notifies(timeout=PATIENCE, stop_after=5)
    ]
    assert len(set(probes)) == 5
    alive = queue_connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [first]
    )
    assert alive == [(1,)]


def test_enqueued_work_is_done_long_before_the_poll(
    pool: Pool, listener: Listener, noop: str, settings: Settings
) -> None:
    settings.JOBS_POLL_INTERVAL = dt.timedelta(hours=1)
    generation_moves(pool, 0)
    pool.start()
    try:
        enqueue(noop)
        wait_until(
            lambda: Job.objects.filter(status=Status.COMPLETED).exists(), "completed"
        )
    finally:
        pool.stop()
        pool.join(time.monotonic() + PATIENCE)
        pool.close()
