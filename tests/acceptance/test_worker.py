"""``runjobs`` as a supervisor sees it: signals, exit statuses, a database that comes and goes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acw.embedded.cluster import Cluster
from tests.acceptance.product import Product, await_true
from tests.cluster import THROWAWAY

Install = Callable[..., Product]

ONE_THREAD = {"JOBS_POLL_INTERVAL": "200ms", "JOBS_WORKERS": "1"}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger"
    path.touch()
    return path


def hold(product: Product, ledger: Path, *, stops: bool = True) -> str:
    """A job that runs until the file ``go`` is there."""
    job_id = product.enqueue(
        "test.hold",
        {"ledger": str(ledger), "until": str(ledger.with_name("go")), "stops": stops},
    )
    product.await_sql("SELECT FROM jobs WHERE id = %s AND status = 'running'", job_id)
    await_true(ledger.read_text, "the handler began", evidence=product.evidence)
    return job_id


def status(product: Product, job_id: str) -> tuple[str, int]:
    ((name, attempts),) = product.sql(
        "SELECT status, attempts FROM jobs WHERE id = %s", job_id
    )
    return name, attempts


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_running_handlers_finish_and_gives_back_the_rest(
    install: Install, ledger: Path, number: signal.Signals
) -> None:
    product = install(**ONE_THREAD)
    worker = product.worker()
    held = hold(product, ledger)
    waiting = product.enqueue("test.append", {"ledger": str(ledger), "line": "late"})
    worker.send(number)
    assert worker.wait() == 0
    assert ledger.read_text().splitlines() == ["begun 1", "stopped"]
    assert status(product, held) == ("completed", 1)
    assert status(product, waiting) == ("pending", 0)
    assert product.sql("SELECT FROM job_workers") == []


def test_past_the_grace_it_names_the_job_gives_it_back_and_exits_with_another_status(
    install: Install, ledger: Path
) -> None:
    product = install(**ONE_THREAD, JOBS_SHUTDOWN_GRACE="300ms")
    worker = product.worker()
    held = hold(product, ledger, stops=False)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 3
    (event,) = worker.events("jobs.module.shutdown_timeout")
    assert held in str(event["jobs"])
    assert status(product, held) == ("pending", 0)
    # Another worker takes it at once, not after the lease.
    ledger.with_name("go").touch()
    product.worker()
    product.await_sql("SELECT FROM jobs WHERE id = %s AND status = 'completed'", held)


def test_a_second_signal_ends_it_at_once(install: Install, ledger: Path) -> None:
    product = install(**ONE_THREAD, JOBS_SHUTDOWN_GRACE="1h")
    worker = product.worker()
    hold(product, ledger, stops=False)
    worker.send(signal.SIGTERM)
    worker.await_event("jobs.module.stopping")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 128 + signal.SIGTERM


def test_switched_off_it_says_so_and_exits_cleanly(install: Install) -> None:
    product = install(JOBS_ENABLED="false")
    assert "JOBS_ENABLED" in product.manage("runjobs")


def test_draining_does_what_is_due_and_ends(install: Install, ledger: Path) -> None:
    product = install()
    for line in ("one", "two"):
        product.enqueue("test.append", {"ledger": str(ledger), "line": line})
    product.manage("runjobs", "--drain", "--workers", "1")
    assert sorted(ledger.read_text().split()) == ["one", "two"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--workers", "none"], "--workers"),
        (["--workers", "0"], "--workers"),
        (["--queues", ","], "--queues"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    install: Install, arguments: list[str], named: str
) -> None:
    assert named in install().manage("runjobs", *arguments, status=2)


def test_tables_that_are_not_there_stop_it_with_what_to_do(install: Install) -> None:
    product = install()
    product.sql("DELETE FROM django_migrations WHERE app = 'jobs'")
    assert "manage.py migrate" in product.manage("runjobs", status=1)


def test_a_bad_setting_stops_it_with_one_line(install: Install) -> None:
    printed = install().manage("runjobs", status=1, JOBS_WORKERS="two")
    assert len(printed.strip().splitlines()) == 1
    assert "JOBS_WORKERS" in printed
    assert "two" in printed


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Cluster]:
    """A server that the test may stop, unlike the one that all tests share.

    It waits for its commits: what was committed must outlive an immediate stop.
    """
    cluster = Cluster(
        tmp_path / "postgres",
        database="acw",
        settings={**THROWAWAY, "synchronous_commit": "on"},
    )
    cluster.ensure_running()
    yield cluster
    cluster.stop()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_of_the_database_is_survived_by_the_same_process(
    own_server: Cluster, tmp_path: Path, ledger: Path, mode: str
) -> None:
    where = own_server.connection_parameters()
    url = f"postgresql:///acw?user={where['user']}&host={where['host']}&port={where['port']}"
    product = Product(url, tmp_path, dict(ONE_THREAD))
    try:
        product.manage("migrate")
        worker = product.worker()
        held = hold(product, ledger)
        own_server.stop(mode)
        worker.await_event("jobs.database.unavailable")
        # Done while the database is away: the result is kept and written once it is back.
        ledger.with_name("go").touch()
        await_true(
            lambda: "ended" in ledger.read_text(),
            "the handler ended",
            evidence=worker.text,
        )
        own_server.ensure_running()
        product.await_sql(
            "SELECT FROM jobs WHERE id = %s AND status = 'completed'", held
        )
        worker.await_event("jobs.database.recovered")
        after = product.enqueue("test.append", {"ledger": str(ledger), "line": "after"})
        product.await_sql(
            "SELECT FROM jobs WHERE id = %s AND status = 'completed'", after
        )
        assert ledger.read_text().splitlines() == ["begun 1", "ended", "after"]
        assert status(product, held) == ("completed", 1)
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    finally:
        product.close()


def test_two_workers_share_the_work_and_do_none_of_it_twice(
    install: Install, ledger: Path
) -> None:
    product = install(JOBS_POLL_INTERVAL="100ms")
    for _ in range(2):
        product.worker()
    code = (
        "from jobs.enqueue import NewJob, enqueue_many\n"
        "enqueue_many([NewJob(type='test.append', payload="
        f"{{'ledger': {str(ledger)!r}, 'line': str(n)}}) for n in range(2000)])"
    )
    product.manage("shell", "--no-imports", "-c", code)
    product.await_sql(
        "SELECT WHERE 2000 = (SELECT count(*) FROM jobs "
        "WHERE type = 'test.append' AND status = 'completed')"
    )
    assert sorted(map(int, ledger.read_text().split())) == list(range(2000))
