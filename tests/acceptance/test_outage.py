"""A database that is away for a while: long handlers live through it, and results kept meanwhile are written under their fence."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from acw.embedded.cluster import Cluster
from tests.acceptance.ledger import RECORDING, Ledger
from tests.acceptance.product import Product, await_true
from tests.cluster import THROWAWAY

THREADS = 8
MOST_TRIES = 60
"""Of one part, with its growing pauses, in some minutes; who spins has tried as often within a second."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Cluster]:
    """One that may be stopped. It waits for its commits: what was committed must outlive an immediate stop."""
    cluster = Cluster(
        tmp_path / "postgres",
        database="acw",
        settings={**THROWAWAY, "synchronous_commit": "on"},
    )
    cluster.ensure_running()
    yield cluster
    cluster.stop()


@pytest.fixture
def product(server: Cluster, tmp_path: Path) -> Iterator[Product]:
    where = server.connection_parameters()
    url = f"postgresql:///acw?user={where['user']}&host={where['host']}&port={where['port']}"
    product = Product(url, tmp_path, dict(RECORDING))
    try:
        product.manage("migrate")
        yield product
    finally:
        product.close()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_handler_longer_than_its_lease_outlives_a_restart_of_the_database(
    server: Cluster, product: Product, ledger: Ledger, tmp_path: Path, mode: str
) -> None:
    # Without a reaper: where the restart takes longer than the lease, it would be right to take the job back.
    worker = product.worker(JOBS_JOB_REAPER_ENABLED="false")
    go = tmp_path / "go"
    (held,) = ledger.enqueue(product, {"until": str(go)})
    product.await_sql("SELECT FROM jobs WHERE id = %s AND status = 'running'", held)
    server.restart(mode)
    # Twice as long as the lease, from when the server is back: the heartbeat holds it.
    product.await_sql(
        "SELECT FROM jobs WHERE id = %s AND lease_until > pg_postmaster_start_time() + INTERVAL '6 seconds'",
        held,
    )
    product.manage("runners", "run", "job_reaper")
    go.touch()
    ledger.await_completed(product, [held])
    assert ledger.pids(held) == [worker.pid]
    assert product.sql("SELECT attempts, lease_seq FROM jobs WHERE id = %s", held) == [
        (1, 1)
    ]


def test_what_ends_while_the_database_is_away_is_written_when_it_is_back_by_whom_it_is_leased_to(
    server: Cluster, product: Product, ledger: Ledger, tmp_path: Path
) -> None:
    worker = product.worker(JOBS_WORKERS=str(THREADS), JOBS_JOB_REAPER_ENABLED="false")
    go = tmp_path / "go"
    ids = ledger.enqueue(product, *[{"until": str(go)}] * THREADS)
    await_true(
        lambda: len(ledger.entries("begun")) == THREADS,
        "all threads are busy",
        evidence=product.evidence,
    )
    # As if another worker had taken this one over.
    taken = ids[0]
    product.sql(
        "UPDATE jobs SET lease_seq = lease_seq + 1, leased_by = 'another', lease_until = now() + INTERVAL '1 hour' "
        "WHERE id = %s",
        taken,
    )
    server.stop("immediate")
    go.touch()
    parts = {f"acw-worker-{number}" for number in range(1, THREADS + 1)}
    parts |= {"acw-heartbeat", "acw-listener", "acw-periodic"}
    await_true(
        lambda: (
            {e["part"] for e in worker.events("jobs.database.unavailable")} >= parts
        ),
        "every thread holds its result, and every part has noticed",
        evidence=worker.text,
    )
    server.ensure_running()
    ledger.await_completed(product, ids[1:])
    await_true(
        lambda: taken in {e["job_id"] for e in worker.events("job.lease_lost")},
        "the fence held",
        evidence=worker.text,
    )
    assert product.sql("SELECT status, leased_by FROM jobs WHERE id = %s", taken) == [
        ("running", "another")
    ]
    assert len(ledger.entries("ended")) == THREADS
    assert product.sql("SELECT max(attempts) FROM jobs") == [(1,)]
    await_true(
        lambda: {e["part"] for e in worker.events("jobs.database.recovered")} >= parts,
        "every part is back",
        evidence=worker.text,
    )
    recovered = worker.events("jobs.database.recovered")
    assert max(event["failures"] for event in recovered) < MOST_TRIES
    ledger.await_completed(product, ledger.enqueue(product, *[{}] * 20))
    assert {entry.pid for entry in ledger.entries()} == {worker.pid}
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
