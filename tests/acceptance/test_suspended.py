"""A worker that is suspended past its lease, and one that is told to go: what they held is done by others, and once."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.acceptance.ledger import RECORDING, Ledger
from tests.acceptance.product import Process, Product, await_true

Install = Callable[..., Product]

HALF_AN_HOUR = "30m"
"""A lease that no test waits for."""

IN_A_BATCH = 16 + 32 + 20
"""A worker that had nothing to do claims 16 jobs, then twice as many each time: the one after so many has others behind it."""


def warm(product: Product, ledger: Ledger) -> None:
    """Let a worker learn that these jobs are quick, so that it claims many at once."""
    ledger.await_completed(product, ledger.enqueue(product, *[{}] * 30))


def held_by(product: Product, worker: Process) -> int:
    ((count,),) = product.sql(
        "SELECT count(*) FROM jobs WHERE status = 'running' AND leased_by LIKE %s",
        f"%:{worker.pid}:%",
    )
    return int(count)


def test_a_worker_that_wakes_after_its_lease_writes_nothing_and_goes_on(
    install: Install, ledger: Ledger, resumed: list[Process]
) -> None:
    product = install(**RECORDING, JOBS_WORKERS="1")
    sleeper = product.worker()
    warm(product, ledger)
    # Its handler suspends the process: what was claimed with it waits in memory.
    resumed.append(sleeper)
    held, *waiting = ids = ledger.enqueue(product, {"signal": "SIGSTOP"}, *[{}] * 100)
    await_true(lambda: ledger.pids(held), "it is suspended", evidence=product.evidence)
    assert held_by(product, sleeper) > 1

    other = product.worker()
    ledger.await_completed(product, ids)
    seen = len(ledger.entries())
    sleeper.send(signal.SIGCONT)
    sleeper.await_event("job.lease_lost")
    other.send(signal.SIGTERM)
    assert other.wait() == 0

    after = ledger.enqueue(product, *[{}] * 20)
    ledger.await_completed(product, after)
    assert sleeper.popen.poll() is None
    # Of what it held it has only ended what it was in the middle of, and no other execution was begun.
    late = ledger.entries()[seen:]
    assert [(e.job_id, e.what) for e in late if e.job_id not in after] == [
        (held, "ended")
    ]
    assert [len(ledger.pids(job_id)) for job_id in waiting] == [1] * len(waiting)
    assert ledger.pids(held) == [sleeper.pid, other.pid]
    assert product.sql(
        "SELECT status, lease_seq, attempts FROM jobs WHERE id = %s", held
    ) == [("completed", 2, 2)]
    lost = {event["job_id"] for event in sleeper.events("job.lease_lost")}
    assert held in lost
    assert ledger.unexplained(product) == []


def test_workers_suspended_at_random_end_no_lease_twice(
    install: Install, ledger: Ledger, resumed: list[Process]
) -> None:
    product = install(**RECORDING, ACW_LOG_LEVEL="debug")
    workers = [product.worker() for _ in range(3)]
    resumed.extend(workers)
    ids = ledger.enqueue(product, *[{"seconds": 0.03}] * 200)
    chance = random.Random(4)  # noqa: S311 (seeded, so that a failure comes again)
    while left := unfinished(product):
        victim = chance.choice(workers)
        victim.send(signal.SIGSTOP)
        if chance.random() < 0.4:
            # Past its leases: the others have taken back what it held.
            nobodys = partial(lambda who: held_by(product, who) == 0, victim)
            await_true(nobodys, "its leases have passed on", evidence=product.evidence)
        else:
            fewer = partial(lambda before: unfinished(product) < before, left)
            await_true(fewer, "the others go on", evidence=product.evidence)
        victim.send(signal.SIGCONT)
    ledger.await_completed(product, ids)
    assert ledger.unexplained(product) == []
    # By a failure or a completion each lease but the last was ended once, and each job completed once.
    completed = Counter(
        event["job_id"]
        for worker in workers
        for event in worker.events("job.completed")
        if event["type"] == "test.record"
    )
    assert completed == dict.fromkeys(ids, 1)


def unfinished(product: Product) -> int:
    ((count,),) = product.sql(
        "SELECT count(*) FROM jobs WHERE status IN ('pending', 'running')"
    )
    return int(count)


def test_what_a_stopping_worker_had_claimed_is_done_by_another_at_once(
    install: Install, ledger: Ledger, tmp_path: Path
) -> None:
    product = install(
        **{**RECORDING, "JOBS_JOB_REAPER_LEASE_TIMEOUT": HALF_AN_HOUR},
        JOBS_WORKERS="1",
        JOBS_SHUTDOWN_GRACE="1h",
    )
    going = product.worker()
    warm(product, ledger)
    go = tmp_path / "go"
    # Its handler has the process stop, and then does not listen.
    stopping = {"signal": "SIGTERM", "until": str(go)}
    ids = ledger.enqueue(product, *[{}] * IN_A_BATCH, stopping, *[{}] * 200)
    held = ids[IN_A_BATCH]
    going.await_event("jobs.module.stopping")
    staying = product.worker()
    others = [job_id for job_id in ids if job_id != held]
    ledger.await_completed(product, others)
    assert going.popen.poll() is None
    assert staying.pid in {e.pid for e in ledger.entries()}
    assert product.sql(
        "SELECT count(*) FROM jobs WHERE id = ANY(%s::uuid[]) AND attempts <> 1", ids
    ) == [(0,)]
    # Given back unbegun: a lease, but no attempt.
    ((returned,),) = product.sql("SELECT count(*) FROM jobs WHERE lease_seq = 2")
    assert returned
    go.touch()
    assert going.wait() == 0
    ledger.await_completed(product, ids)
    assert ledger.pids(held) == [going.pid]
    assert ledger.unexplained(product) == []
