"""Threads that hang, a database that is locked or swallows everything, and ticks whose processes die."""

from __future__ import annotations

import itertools
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from jobs.testing import wait_until
from tests.acceptance.pgbouncer import PgBouncer
from tests.acceptance.product import Product, await_true

Install = Callable[..., Product]

STALLING = {
    "DJANGO_SETTINGS_MODULE": "tests.acceptance.stalling.settings",
    "JOBS_POLL_INTERVAL": "100ms",
    "JOBS_WORKERS": "1",
}
SHORT_LEASE = {"JOBS_JOB_REAPER_LEASE_TIMEOUT": "2s"}
READY = (
    "from django.test import Client; answer = Client(HTTP_HOST='localhost').get('/readyz'); "
    "print(answer.status_code, answer.content.decode())"
)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """What handlers and ticks write."""
    path = tmp_path / "lines"
    path.touch()
    return path


@pytest.fixture
def stalling(install: Install, lines: Path) -> Callable[..., Product]:
    return lambda **settings: install(
        **{**STALLING, "TEST_TICKS": str(lines), **settings}
    )


def readiness(product: Product) -> tuple[str, str]:
    """The status and the text of ``/readyz``, from a web process of this host."""
    status, _, text = product.manage("shell", "--no-imports", "-c", READY).partition(
        " "
    )
    return status, text.strip()


def hold(product: Product, lines: Path) -> str:
    """A job that runs, whatever its context says, until the file ``go`` is there."""
    job_id = product.enqueue(
        "test.hold",
        {"ledger": str(lines), "until": str(lines.with_name("go")), "stops": False},
    )
    await_true(lines.read_text, "the handler began", evidence=product.evidence)
    return job_id


@contextmanager
def locked(product: Product, table: str) -> Iterator[None]:
    """An operator holds the table, as an ALTER TABLE does."""
    with psycopg.connect(product.url) as connection:
        connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


def test_a_part_that_hangs_turns_readyz_red_and_then_ends_the_process(
    stalling: Install, lines: Path, tmp_path: Path
) -> None:
    hang = tmp_path / "hang"
    product = stalling(
        TEST_HANG=str(hang), JOBS_STALL_AFTER="2s", JOBS_SHUTDOWN_GRACE="1m"
    )
    worker = product.worker()
    held = hold(product, lines)
    assert readiness(product) == ("200", "ok")
    hang.touch()
    product.await_sql("SELECT FROM job_workers WHERE stalled = '[\"acw-heartbeat\"]'")
    status, text = readiness(product)
    assert status == "503"
    assert text.startswith("worker ")
    assert text.endswith(": no progress in acw-heartbeat")
    assert "has stalled" in product.manage("doctor", status=1)
    event = worker.await_event("jobs.module.stalled")
    assert (event["level"], event["part"]) == ("critical", "acw-heartbeat")
    assert "in hang_then_beat" in event["stack"]
    worker.await_event("jobs.module.stopping")
    lines.with_name("go").touch()
    assert worker.wait() == 1
    assert product.sql("SELECT status FROM jobs WHERE id = %s", held) == [
        ("completed",)
    ]
    assert product.sql("SELECT FROM job_workers") == []
    assert readiness(product) == ("200", "ok")


def test_an_operators_lock_ends_no_worker(stalling: Install, lines: Path) -> None:
    product = stalling(JOBS_STALL_AFTER="2s", **SHORT_LEASE)
    worker = product.worker()
    held = hold(product, lines)
    with locked(product, "jobs"):
        # Each part has given up a statement, and tried again: a longer time than its deadline.
        for _ in range(8):
            seen = product.sql("SELECT beat_at FROM job_workers")
            product.await_sql("SELECT FROM job_workers WHERE beat_at > %s", seen[0][0])
    lines.with_name("go").touch()
    product.await_sql("SELECT FROM jobs WHERE id = %s AND status = 'completed'", held)
    assert worker.events("jobs.module.stalled") == []
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert lines.read_text().splitlines() == ["begun 1", "ended"]


@pytest.mark.parametrize("table", ["jobs", "job_workers"])
def test_a_stop_comes_to_its_end_behind_a_lock(
    stalling: Install, lines: Path, table: str
) -> None:
    product = stalling(JOBS_SHUTDOWN_GRACE="1s")
    worker = product.worker()
    hold(product, lines)
    with locked(product, table):
        lines.with_name("go").touch()
        await_true(
            lambda: "ended" in lines.read_text(), "it ended", evidence=worker.text
        )
        worker.send(signal.SIGTERM)
        # With the outcome unwritten behind the lock on the jobs, and all written but the farewell behind the other.
        assert worker.wait() == (3 if table == "jobs" else 0)


def test_a_stop_comes_to_its_end_where_the_database_answers_nothing(
    stalling: Install, lines: Path
) -> None:
    product = stalling(JOBS_SHUTDOWN_GRACE="1s")
    with PgBouncer(product.url, pool_mode="session") as bouncer:
        worker = product.worker(DATABASE_URL=bouncer.url)
        hold(product, lines)
        bouncer.send(signal.SIGSTOP)
        lines.with_name("go").touch()
        await_true(
            lambda: "ended" in lines.read_text(), "it ended", evidence=worker.text
        )
        worker.send(signal.SIGTERM)
        assert worker.wait() == 3


def test_a_statement_that_is_never_answered_ends_the_process(
    stalling: Install,
) -> None:
    product = stalling(JOBS_SHUTDOWN_GRACE="1s")
    with PgBouncer(product.url, pool_mode="session") as bouncer:
        worker = product.worker(DATABASE_URL=bouncer.url, JOBS_STALL_AFTER="2s")
        bouncer.send(signal.SIGSTOP)
        assert worker.wait() == 1
    parts = {event["part"] for event in worker.events("jobs.module.stalled")}
    assert parts & {"acw-heartbeat", "acw-periodic", "acw-main"}


def slots(lines: Path) -> list[tuple[float, int]]:
    """The slot that each tick was for, and the process that ran it."""
    written = [line.split() for line in lines.read_text().splitlines()]
    return [(float(slot), int(pid)) for slot, pid in written]


def ticked(lines: Path, count: int) -> Callable[[], bool]:
    before = len(slots(lines))
    return lambda: len(slots(lines)) >= before + count


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_restarts_neither_move_a_schedule_nor_double_a_tick(
    stalling: Install, lines: Path, number: signal.Signals
) -> None:
    product = stalling(TEST_RUNNERS="test_slot", **SHORT_LEASE)
    workers = [product.start("runjobs") for _ in range(4)]
    for worker in workers:
        worker.await_event("jobs.listener.connected")
    killed: set[int] = set()
    for oldest in range(3):
        wait_until(ticked(lines, 2), "two more ticks", timeout=60)
        worker = workers[oldest]
        worker.send(number)
        worker.wait()
        killed.add(worker.pid)
        workers.append(product.start("runjobs"))
    wait_until(ticked(lines, 2), "two more ticks", timeout=60)
    seen = slots(lines)
    doubles = {
        slot: [pid for other, pid in seen if other == slot]
        for slot, count in Counter(slot for slot, _ in seen).items()
        if count > 1
    }
    # Only what a killed process had begun is run again.
    assert all(set(pids) & killed for pids in doubles.values())
    assert number == signal.SIGKILL or not doubles
    on_the_grid = sorted({slot for slot, _ in seen})
    steps = [
        round(after - before, 3) for before, after in itertools.pairwise(on_the_grid)
    ]
    assert all(step == round(step) for step in steps)
    # None is left out while processes live; one that was killed at its tick holds up a second or two.
    assert Counter(steps)[1.0] >= len(steps) - 4
    assert product.sql(
        "SELECT last_error FROM job_runners WHERE name = 'test_slot'"
    ) == [("",)]


def test_a_tick_that_kills_its_process_does_so_three_times(
    stalling: Install, lines: Path
) -> None:
    product = stalling(TEST_RUNNERS="test_fatal", **SHORT_LEASE)
    for _ in range(3):
        assert product.start("runjobs").wait() == 9
    worker = product.worker()
    product.await_sql(
        "SELECT FROM job_runners WHERE name = 'test_fatal' AND last_outcome = 'failed' "
        "AND last_error LIKE 'cut off 3 times%%' AND next_run_at > now() + interval '50 minutes' AND %s",
        True,
    )
    assert len(lines.read_text().splitlines()) == 3
    assert "cut off 3 times" in product.manage("doctor", status=1)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 3), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_tick_that_is_cut_off_is_run_by_the_next_process(
    stalling: Install, lines: Path, number: signal.Signals, status: int
) -> None:
    product = stalling(
        TEST_RUNNERS="test_slow", JOBS_SHUTDOWN_GRACE="200ms", **SHORT_LEASE
    )
    first = product.worker()
    await_true(lines.read_text, "the tick began", evidence=product.evidence)
    first.send(number)
    assert first.wait() == status
    lines.with_name("go").touch()
    second = product.worker()
    product.await_sql(
        "SELECT FROM job_runners WHERE name = 'test_slow' AND last_outcome = 'completed' AND tries = 2"
    )
    ended: list[Any] = lines.read_text().splitlines()
    assert ended == [f"begun {first.pid}", f"begun {second.pid}", f"ended {second.pid}"]


def test_a_suspended_process_records_nothing_over_the_tick_of_its_successor(
    stalling: Install, lines: Path
) -> None:
    product = stalling(TEST_RUNNERS="test_slow", **SHORT_LEASE)
    first = product.worker()
    await_true(lines.read_text, "the tick began", evidence=product.evidence)
    first.send(signal.SIGSTOP)
    second = product.worker()
    await_true(
        lambda: f"begun {second.pid}" in lines.read_text(),
        "the other has taken it",
        evidence=product.evidence,
    )
    lines.with_name("go").touch()
    done = (
        "SELECT last_worker, last_finished_at FROM job_runners "
        "WHERE name = 'test_slow' AND last_outcome = 'completed'"
    )
    (recorded,) = product.await_sql(done)
    assert f":{second.pid}:" in recorded[0]
    first.send(signal.SIGCONT)
    await_true(
        lambda: f"ended {first.pid}" in lines.read_text(),
        "the first goes on",
        evidence=product.evidence,
    )
    await_true(
        lambda: [
            event
            for event in first.events("runner.completed")
            if event["runner"] == "test_slow"
        ],
        "the first has ended its tick",
        evidence=first.text,
    )
    first.send(signal.SIGTERM)
    assert first.wait() == 0
    assert product.sql(done) == [recorded]


def test_behind_a_pooler_in_transaction_mode_all_is_done_by_polling(
    stalling: Install, lines: Path
) -> None:
    product = stalling(
        TEST_RUNNERS="test_slot", JOBS_BACKOFF_BASE="100ms", **SHORT_LEASE
    )
    with PgBouncer(product.url, default_pool_size="6") as bouncer:
        product.settings["DATABASE_URL"] = bouncer.url
        worker = product.start("runjobs", JOBS_WORKERS="3")
        polling = worker.await_event("jobs.listener.polling")
        assert "session mode" in polling["advice"]
        held = product.enqueue(
            "test.hold",
            {
                "ledger": str(lines.with_name("held")),
                "until": str(lines.with_name("go")),
                "stops": False,
            },
        )
        code = (
            "from jobs.enqueue import NewJob, enqueue_many\n"
            "enqueue_many([NewJob(type='test.flaky', payload={'n': n}) for n in range(300)])"
        )
        product.manage("shell", "--no-imports", "-c", code)
        product.await_sql(
            "SELECT WHERE 300 = (SELECT count(*) FROM jobs "
            "WHERE type = 'test.flaky' AND status = 'completed' AND attempts = 2)"
        )
        # The lease is kept for as long as the job runs, several times its length, and the schedule goes on.
        for _ in range(3):
            ((until,),) = product.sql(
                "SELECT lease_until FROM jobs WHERE id = %s", held
            )
            product.await_sql(
                "SELECT FROM jobs WHERE id = %s AND lease_until > %s + interval '1 second'",
                held,
                until,
            )
        wait_until(ticked(lines, 2), "two more ticks", timeout=60)
        lines.with_name("go").touch()
        product.await_sql(
            "SELECT FROM jobs WHERE id = %s AND status = 'completed' AND attempts = 1",
            held,
        )
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
        assert product.sql("SELECT FROM job_workers") == []
    assert len(worker.events("jobs.listener.polling")) == 1
    for never in (
        "jobs.listener.connected",
        "jobs.listener.lost",
        "jobs.database.unavailable",
        "job.lease_lost",
        "job.lease_expired",
    ):
        assert worker.events(never) == []


def test_behind_a_pooler_in_session_mode_work_starts_by_notification(
    stalling: Install, lines: Path
) -> None:
    product = stalling(JOBS_POLL_INTERVAL="1h")
    with PgBouncer(product.url, pool_mode="session") as bouncer:
        worker = product.worker(DATABASE_URL=bouncer.url)
        job = product.enqueue("test.append", {"ledger": str(lines), "line": "heard"})
        product.await_sql(
            "SELECT FROM jobs WHERE id = %s AND status = 'completed'", job
        )
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    assert worker.events("jobs.listener.polling") == []


def test_a_listener_whose_backend_is_terminated_misses_nothing(
    stalling: Install, lines: Path
) -> None:
    product = stalling(JOBS_POLL_INTERVAL="1h")
    worker = product.worker()
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND query LIKE 'LISTEN %%' AND %s"
    )
    for number in range(3):
        assert len(product.sql(cut, True)) == 1
        # While nobody listens, or once it does again: found by a look at once, or by its notification.
        job = product.enqueue("test.append", {"ledger": str(lines), "line": "found"})
        product.await_sql(
            "SELECT FROM jobs WHERE id = %s AND status = 'completed'", job
        )
        worker.await_events("jobs.listener.connected", number + 2)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
