"""A server that turns read-only under the workers, as after a failover, and back."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acw.embedded.cluster import Cluster
from tests.acceptance.bank import BANKED, Bank
from tests.acceptance.product import Process, Product, await_true
from tests.cluster import THROWAWAY

JOBS = 400


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Cluster]:
    """A server whose settings the test may change, unlike the one that all tests share."""
    cluster = Cluster(tmp_path / "postgres", database="acw", settings=THROWAWAY)
    cluster.ensure_running()
    yield cluster
    cluster.stop()


def turn(server: Cluster, *, read_only: bool) -> None:
    value = "on" if read_only else "off"
    with server.connect() as connection:
        connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        connection.execute("SELECT pg_reload_conf()")


def refused(worker: Process) -> Callable[[], bool]:
    def some_was() -> bool:
        failed = worker.events("job.fail_retry")
        return any("read-only" in event["error"] for event in failed) or bool(
            worker.events("jobs.database.unavailable")
        )

    return some_was


def test_nothing_is_lost_nor_done_twice_and_the_same_process_goes_on(
    own_server: Cluster, tmp_path: Path
) -> None:
    where = own_server.connection_parameters()
    url = f"postgresql:///acw?user={where['user']}&host={where['host']}&port={where['port']}"
    ledger = tmp_path / "ledger"
    product = Product(url, tmp_path, {**BANKED, "JOBS_JOB_REAPER_LEASE_TIMEOUT": "5m"})
    try:
        product.manage("migrate")
        with Bank(product) as bank:
            bank.order(JOBS)
            product.sql(
                "INSERT INTO jobs (id, type, payload) SELECT gen_random_uuid(), 'test.append', "
                "jsonb_build_object('ledger', %s::text, 'line', n::text) FROM generate_series(1, %s) n",
                str(ledger),
                JOBS,
            )
            worker = product.worker()
            await_true(ledger.exists, "it works", evidence=worker.text)
            turn(own_server, read_only=True)
            await_true(
                refused(worker), "the server refuses writes", evidence=worker.text
            )
            turn(own_server, read_only=False)
            await_true(
                lambda: bank.open() == 0,
                "every job completed",
                evidence=product.evidence,
            )
            assert bank.wrong() == []
        assert sorted(map(int, ledger.read_text().split())) == list(range(1, JOBS + 1))
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    finally:
        product.close()
