from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from jobs import listener as listener_module
from jobs import messages, wakeup
from jobs.connection import QueueConnection
from jobs.enqueue import enqueue
from jobs.events import LogEvent
from jobs.listener import Listener
from jobs.models import Job, Status
from jobs.pool import Pool
from jobs.pooling import notifications_arrive
from jobs.selection import Queues
from jobs.testing import PATIENCE, wait_until
from tests.acceptance.pgbouncer import through
from tests.jobs.support import one_waiting

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


def say(connection: QueueConnection, message: str) -> None:
    connection.execute("SELECT pg_notify(%s, %s)", [wakeup.CHANNEL, message])


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
    say(queue_connection, messages.of_queues(["default"]))
    generation_moves(pool, before)


def test_news_of_other_queues_wakes_nobody(
    pool: Pool, listener: Listener, queue_connection: QueueConnection
) -> None:
    generation_moves(pool, 0)
    before = pool.generation
    for message in (
        messages.of_queues(["other"]),
        messages.of_probe("of another process"),
        '{"from": "a newer version"}',
        messages.ANY,
    ):
        say(queue_connection, message)
    # The last, for all, is heard after the others: one wake-up for four messages.
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
    # More than asked for, where several have come in together.
    assert len(set(probes)) == len(probes) >= 5
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


def test_a_queue_whose_name_has_a_comma_is_known_by_it(
    transactional_db: None, queue_connection: QueueConnection
) -> None:
    pool = Pool(worker="w1", threads=1, queues=Queues(), lease=dt.timedelta(minutes=5))
    listener = Listener(pool)
    listener.start()
    try:
        generation_moves(pool, 0)
        before = set(pool.queues.names())
        say(queue_connection, messages.of_queues(["a,b", "probe:x"]))
        generation_moves(pool, 1)
    finally:
        listener.stop()
        listener.join(PATIENCE)
    assert set(pool.queues.names()) - before == {"a,b", "probe:x"}


def test_a_handler_that_waits_is_woken_when_its_job_is_to_be_cancelled(
    pool: Pool, listener: Listener, queue_connection: QueueConnection
) -> None:
    with one_waiting(pool) as context:
        stale = (context.job_id, context.lease_seq - 1)
        say(queue_connection, *messages.of_cancelled({stale}))
        before = pool.generation
        say(queue_connection, messages.ANY)
        generation_moves(pool, before)
        mistaken = context.should_stop
        lease = (context.job_id, context.lease_seq)
        say(queue_connection, *messages.of_cancelled({lease}))
        wait_until(
            lambda: Job.objects.get().status == Status.CANCELLED, "it is cancelled"
        )
    assert not mistaken


def test_behind_a_pool_of_transactions_it_leaves_the_work_to_the_poll(
    pool: Pool,
    noop: str,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings.JOBS_POLL_INTERVAL = dt.timedelta(milliseconds=50)
    monkeypatch.setattr("jobs.pooling.ANSWER_WITHIN", 0.2)
    monkeypatch.setattr(listener_module, "LOOK_AGAIN_EVERY", 0.1)
    looked: list[bool] = []

    def look(*args: Any, **options: Any) -> bool:
        looked.append(notifications_arrive(*args, **options))
        return looked[-1]

    monkeypatch.setattr(listener_module, "notifications_arrive", look)
    with through("transaction"):
        listener = Listener(pool)
        listener.start()
        pool.start()
        enqueue(noop)
        wait_until(
            lambda: Job.objects.filter(status=Status.COMPLETED).exists(), "completed"
        )
        wait_until(lambda: len(looked) >= 3, "it has looked again")
        for part in (listener, pool):
            part.stop()
        listener.join(PATIENCE)
        pool.join(time.monotonic() + PATIENCE)
        pool.close()
    assert looked[:3] == [False] * 3
    assert listener.error is None
    assert [r.msg for r in caplog.records] == [LogEvent.LISTENER_POLLING]


def test_once_the_pooler_lets_them_through_it_listens(
    pool: Pool,
    queue_connection: QueueConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener_module, "LOOK_AGAIN_EVERY", 0.1)
    answers = iter([False, True])
    monkeypatch.setattr(listener_module, "is_direct", lambda connection: False)
    monkeypatch.setattr(
        listener_module, "notifications_arrive", lambda *args, **kw: next(answers)
    )
    listener = Listener(pool)
    listener.start()
    generation_moves(pool, 0)
    assert len(listeners(queue_connection)) == 1
    listener.stop()
    listener.join(PATIENCE)
