"""The network between a worker and its database: packets that vanish, peers that hang, connections that are cut."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from acw.embedded.postmaster import SOCKET_NAME
from tests.acceptance.ledger import RECORDING, Ledger
from tests.acceptance.processor import SPINNING, ProcessorUse
from tests.acceptance.product import Process, Product, await_true
from tests.acceptance.proxy import Proxy

Install = Callable[..., Product]

# What takes about a minute as ACW sets it takes a few seconds here.
IMPATIENT = (
    "connect_timeout=2&tcp_user_timeout=2000"
    "&keepalives_idle=1&keepalives_interval=1&keepalives_count=2"
)
PARTS = {
    "acw-worker-1",
    "acw-worker-2",
    "acw-heartbeat",
    "acw-listener",
    "acw-periodic",
}


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    host = conninfo_to_dict(os.environ["DATABASE_URL"])["host"]
    if not str(host).startswith("/"):
        pytest.skip("the tests' server has no Unix socket that a proxy could lead to")
    with Proxy(Path(str(host)) / SOCKET_NAME) as proxy:
        yield proxy


def through(proxy: Proxy, product: Product, parameters: str = IMPATIENT) -> str:
    """The product's database by way of the proxy."""
    where = conninfo_to_dict(product.url)
    return (
        f"postgresql://{where['user']}@127.0.0.1:{proxy.port}/{where['dbname']}"
        f"?sslmode=disable&gssencmode=disable&{parameters}"
    )


def parts_that_told(worker: Process, event: str) -> set[str]:
    return {record["part"] for record in worker.events(event)}


def test_a_black_hole_is_noticed_costs_nothing_and_is_survived_by_the_same_process(
    install: Install, proxy: Proxy, ledger: Ledger, tmp_path: Path
) -> None:
    product = install(
        **{**RECORDING, "JOBS_JOB_REAPER_LEASE_TIMEOUT": "10m"}, JOBS_WORKERS="2"
    )
    worker = product.worker(DATABASE_URL=through(proxy, product))
    go = tmp_path / "go"
    running = ledger.enqueue(product, {"until": str(go)})
    await_true(
        lambda: ledger.entries("begun"), "the handler began", evidence=product.evidence
    )

    proxy.black_hole()
    use = ProcessorUse(worker.pid)
    go.touch()
    await_true(
        lambda: ledger.entries("ended"), "the handler ended", evidence=worker.text
    )
    # Each by a connection of its own, the listener also, which only ever waits to be told.
    await_true(
        lambda: parts_that_told(worker, "jobs.database.unavailable") >= PARTS,
        "every part has noticed",
        evidence=worker.text,
    )
    assert use.share() < SPINNING
    assert product.sql(
        "SELECT status FROM jobs WHERE id = ANY(%s::uuid[])", running
    ) == [("running",)]

    proxy.heal()
    ledger.await_completed(product, running)
    await_true(
        lambda: parts_that_told(worker, "jobs.database.recovered") >= PARTS,
        "every part is back",
        evidence=worker.text,
    )
    ledger.await_completed(product, ledger.enqueue(product, *[{}] * 20))
    assert {entry.pid for entry in ledger.entries()} == {worker.pid}
    assert ledger.unexplained(product) == []
    assert product.sql("SELECT max(attempts) FROM jobs") == [(1,)]
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.parametrize("hole", [Proxy.black_hole, Proxy.swallow])
def test_a_signal_ends_a_worker_whose_database_does_not_answer(
    install: Install,
    proxy: Proxy,
    ledger: Ledger,
    tmp_path: Path,
    hole: Callable[[Proxy], None],
) -> None:
    """With the connection's own patience as ACW sets it, which is longer than a supervisor's."""
    product = install(
        **{**RECORDING, "JOBS_JOB_REAPER_LEASE_TIMEOUT": "10m"},
        JOBS_SHUTDOWN_GRACE="1s",
    )
    worker = product.worker(DATABASE_URL=through(proxy, product, "connect_timeout=10"))
    go = tmp_path / "go"
    ledger.enqueue(product, {"until": str(go)})
    await_true(
        lambda: ledger.entries("begun"), "the handler began", evidence=product.evidence
    )
    hole(proxy)
    go.touch()
    await_true(
        lambda: ledger.entries("ended"), "the handler ended", evidence=worker.text
    )
    worker.send(signal.SIGTERM)
    # Its result could not be written: the lease runs out, as after a crash.
    assert worker.wait() == 3


def test_connections_cut_at_random_lose_nothing_and_double_nothing(
    install: Install, proxy: Proxy, ledger: Ledger
) -> None:
    product = install(**RECORDING)
    chance = random.Random(4)  # noqa: S311 (seeded, so that a failure comes again)
    proxy.budget = lambda: chance.randrange(200, 30_000)
    # Of its own, since the listener may be cut before it is heard of.
    workers = [
        product.start("runjobs", DATABASE_URL=through(proxy, product)) for _ in range(2)
    ]
    ids = ledger.enqueue(product, *[{"seconds": 0.005}] * 500)
    await_true(
        lambda: proxy.cuts >= 20, "20 connections are cut", evidence=product.evidence
    )
    # By now: what needs more in one transaction than any connection may carry would never be done.
    proxy.budget = lambda: None
    ledger.await_completed(product, ids)
    assert ledger.unexplained(product) == []
    assert len(ledger.entries("ended")) >= len(ids)
    assert [worker.popen.poll() for worker in workers] == [None, None]
