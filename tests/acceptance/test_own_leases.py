"""Job types whose leases are shorter than those of all others, held by real workers."""

from __future__ import annotations

import datetime as dt
import signal
from collections.abc import Callable

from tests.acceptance.faulted import BRIEF_LEASE
from tests.acceptance.ledger import RECORDING, Ledger
from tests.acceptance.product import Process, Product, await_true

Install = Callable[..., Product]

BRIEF = dt.timedelta(seconds=3)
LEASES = {
    **RECORDING,
    # No test waits for those.
    "JOBS_JOB_REAPER_LEASE_TIMEOUT": "30m",
    BRIEF_LEASE: f"{BRIEF.total_seconds():g}",
    "JOBS_WORKERS": "1",
}
BY_SLEEPER = "SELECT type, id::text FROM jobs WHERE status = 'running' AND leased_by LIKE %s AND lease_seq = 1"


def held_by(product: Product, worker: Process) -> dict[str, set[str]]:
    """What it holds under the first leases, by type."""
    held: dict[str, set[str]] = {"test.record": set(), "test.brief": set()}
    for type_name, job_id in product.sql(BY_SLEEPER, f"%:{worker.pid}:%"):
        held[type_name].add(job_id)
    return held


def test_a_handler_may_run_for_many_times_its_types_lease(
    install: Install, ledger: Ledger
) -> None:
    """The heartbeat keeps up with it, however long the leases of the others are."""
    product = install(**LEASES)
    # The second one is there to take the job from the first, if it may.
    for _ in range(2):
        product.worker()
    seconds = 3.5 * BRIEF.total_seconds()
    (job,) = ledger.enqueue(product, {"type": "test.brief", "seconds": seconds})
    left: set[dt.timedelta] = set()

    def ended() -> bool:
        left.update(
            row[0]
            for row in product.sql(
                "SELECT lease_until - clock_timestamp() FROM jobs WHERE type = 'test.brief' AND status = 'running'"
            )
        )
        return bool(ledger.entries("ended"))

    await_true(ended, "the handler ended", evidence=product.evidence)
    ledger.await_completed(product, [job])
    ((attempts, lease_seq, took),) = product.sql(
        "SELECT attempts, lease_seq, completed_at - started_at FROM jobs WHERE id = %s",
        job,
    )
    assert (attempts, lease_seq) == (1, 1)
    assert took > 3 * BRIEF
    assert max(left) <= BRIEF
    assert [entry.what for entry in ledger.entries()] == ["begun", "ended"]


def test_a_worker_that_wakes_after_the_short_leases_has_lost_those_only(
    install: Install, ledger: Ledger, resumed: list[Process]
) -> None:
    product = install(**LEASES)
    # Suspended in the middle of a tick, it would keep the other from reaping.
    sleeper = product.worker(JOBS_JOB_REAPER_ENABLED="false")
    resumed.append(sleeper)
    both = [{}, {"type": "test.brief"}]
    # So it learns that they are quick, and claims many at once.
    ledger.await_completed(product, ledger.enqueue(product, *both * 15))
    stopper, *ids = ledger.enqueue(product, {"signal": "SIGSTOP"}, *both * 50)
    await_true(
        lambda: ledger.pids(stopper), "it is suspended", evidence=product.evidence
    )
    held = held_by(product, sleeper)
    long, brief = held["test.record"], held["test.brief"]
    assert len(long) > 1
    assert brief

    other = product.worker()
    ledger.await_completed(product, set(ids) - long)
    assert held_by(product, sleeper) == {"test.record": long, "test.brief": set()}
    sleeper.send(signal.SIGCONT)
    ledger.await_completed(product, [stopper, *ids])

    assert {tuple(ledger.pids(job_id)) for job_id in brief} == {(other.pid,)}
    # Its own still, or given back by it: in neither case had anybody else begun them.
    assert {len(ledger.pids(job_id)) for job_id in long} == {1}
    assert product.sql(
        "SELECT DISTINCT type, attempts FROM jobs WHERE id = ANY(%s::uuid[]) ORDER BY type",
        [*brief, *long],
    ) == [("test.brief", 2), ("test.record", 1)]
    lost = {event["job_id"] for event in sleeper.events("job.lease_lost")}
    assert not lost & long
    assert ledger.unexplained(product) == []
