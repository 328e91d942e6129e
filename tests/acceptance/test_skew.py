"""A worker's host whose clock is ten minutes off, or is set right while it works: the database's clock decides."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.clocks import WrongClock
from tests.acceptance.ledger import RECORDING, Ledger
from tests.acceptance.product import Process, Product, await_true

Install = Callable[..., Product]


@pytest.fixture(params=["+10m", "-10m"])
def clock(request: pytest.FixtureRequest, tmp_path: Path) -> WrongClock:
    return WrongClock(tmp_path, request.param)


def extended(product: Product, job_id: str, times: int) -> None:
    """Wait until the heartbeat has moved the end of the job's lease so often."""
    seen = set()

    def enough() -> bool:
        seen.update(
            product.sql(
                "SELECT lease_until FROM jobs WHERE id = %s AND status = 'running'",
                job_id,
            )
        )
        return len(seen) > times

    await_true(enough, "the lease is extended", evidence=product.evidence)


def ticks(worker: Process, runner: str) -> int:
    return sum(e["runner"] == runner for e in worker.events("runner.completed"))


def test_the_clock_is_wrong(install: Install, clock: WrongClock) -> None:
    """Or the other tests would prove nothing; and the doctor tells of it."""
    product = install(**clock.environment)
    ((database,),) = product.sql("SELECT extract(epoch FROM now())")
    code = "import time; print(time.time(), time.monotonic())"
    wall, monotonic = product.manage("shell", "--no-imports", "-c", code).split()
    off = float(wall) - float(database)
    assert 300 < abs(off) < 900
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert abs(float(monotonic) - uptime) < 300
    told = product.manage("doctor")
    assert f"{'ahead of' if off > 0 else 'behind'} the database's" in told


def test_jobs_leases_and_ticks_go_by_the_databases_clock(
    install: Install, clock: WrongClock, ledger: Ledger, tmp_path: Path
) -> None:
    product = install(**RECORDING, JOBS_WORKERS="2")
    wrong = product.worker(**clock.environment)
    go = tmp_path / "go"
    (held,) = ledger.enqueue(product, {"until": str(go)})
    await_true(
        lambda: ledger.entries("begun"), "the handler began", evidence=product.evidence
    )
    # Its lease is the worker's whose clock is wrong, and the reaper here is one whose clock is right.
    right = product.worker()
    # By the clock that is ahead it would be due.
    ((later,),) = product.sql(
        "INSERT INTO jobs (id, type, payload, run_at) SELECT gen_random_uuid(), 'test.record', "
        "jsonb_build_object('ledger', %s::text), now() + INTERVAL '5 minutes' RETURNING id::text",
        str(ledger.path),
    )
    failing = ledger.enqueue(product, {"fails": 2})
    ledger.await_completed(product, failing)
    extended(product, held, 8)  # beats of a fifth of the lease
    before = ticks(wrong, "job_reaper") + ticks(right, "job_reaper")
    await_true(
        lambda: ticks(wrong, "job_reaper") + ticks(right, "job_reaper") > before + 5,
        "the reapers tick",
        evidence=product.evidence,
    )
    # On the grid, and neither at once again and again nor in ten minutes.
    ((ahead,),) = product.sql(
        "SELECT next_run_at <= statement_timestamp() + 2 * interval FROM job_runners WHERE name = 'job_reaper'"
    )
    assert ahead
    assert product.sql("SELECT status, attempts FROM jobs WHERE id = %s", held) == [
        ("running", 1)
    ]
    go.touch()
    ledger.await_completed(product, [held])
    assert len(ledger.pids(held)) == 1
    assert ledger.pids(later) == []
    for worker in (wrong, right):
        assert worker.events("job.lease_expired") == []
        assert worker.events("job.lease_lost") == []
    assert ledger.unexplained(product) == []


def test_a_retry_waits_as_long_as_it_should(
    install: Install, clock: WrongClock, ledger: Ledger
) -> None:
    product = install(**{**RECORDING, "JOBS_BACKOFF_BASE": "2m"})
    product.worker(**clock.environment)
    (job_id,) = ledger.enqueue(product, {"fails": 1})
    product.await_sql(
        "SELECT FROM jobs WHERE id = %s AND status = 'pending' AND attempts = 1", job_id
    )
    # Lengthened by up to a quarter at random.
    assert product.sql(
        "SELECT run_at - updated_at BETWEEN INTERVAL '2 minutes' AND INTERVAL '2.6 minutes', "
        "updated_at BETWEEN now() - INTERVAL '2 minutes' AND now() FROM jobs WHERE id = %s",
        job_id,
    ) == [(True, True)]


def test_what_a_host_with_a_wrong_clock_enqueues_is_due_now_and_in_order(
    install: Install, clock: WrongClock, ledger: Ledger, tmp_path: Path
) -> None:
    """The ids carry the wrong time; order and times are the database's."""
    wrong = install(**(RECORDING | clock.environment))
    right = Product(wrong.url, tmp_path, dict(RECORDING))
    first = ledger.enqueue(right, {})
    second = ledger.enqueue(wrong, {})
    third = ledger.enqueue(right, {})
    ids = first + second + third
    assert sorted(ids) != ids
    assert wrong.sql(
        "SELECT bool_and(run_at <= now() AND created_at BETWEEN now() - INTERVAL '5 minutes' AND now()) FROM jobs"
    ) == [(True,)]
    wrong.manage("runjobs", "--drain", "--workers", "1")
    assert [entry.job_id for entry in ledger.entries("ended")] == ids


def test_a_clock_that_is_set_while_a_handler_runs_changes_nothing(
    install: Install, ledger: Ledger, tmp_path: Path
) -> None:
    clock = WrongClock(tmp_path, "+10m")
    product = install(**RECORDING, JOBS_WORKERS="2")
    worker = product.worker(**clock.environment)
    go = tmp_path / "go"
    (held,) = ledger.enqueue(product, {"until": str(go)})
    await_true(
        lambda: ledger.entries("begun"), "the handler began", evidence=product.evidence
    )
    for shift in ("-10m", "+0", "+10m"):
        clock.set(shift)
        extended(product, held, 6)
        ledger.await_completed(product, ledger.enqueue(product, {}, {"fails": 1}))
    go.touch()
    ledger.await_completed(product, [held])
    assert worker.events("job.lease_lost") == []
    assert worker.events("job.lease_expired") == []
    assert ledger.unexplained(product) == []
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
