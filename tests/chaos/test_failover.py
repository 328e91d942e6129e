"""A failover pair: the primary dies, or retires, under load; workers and web follow without a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.faulted import PROBE_EVERY
from tests.acceptance.ledger import RECORDING, Ledger
from tests.acceptance.product import Process, Product, await_true
from tests.acceptance.web import Web
from tests.chaos.pair import Pair

JOBS_BEFORE = 300
ENQUEUES = 40
"""Of ten jobs each, while the primary changes."""


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    try:
        pair.start()
        yield pair
    finally:
        pair.close()


@pytest.fixture
def product(pair: Pair, tmp_path: Path) -> Iterator[Product]:
    # The test looks where the writes are; ACW is to find that out by itself.
    url = pair.url("target_session_attrs=read-write")
    product = Product(url, tmp_path, {**RECORDING, "DATABASE_URL": pair.url()})
    try:
        product.manage("migrate")
        yield product
    finally:
        product.close()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


class Producer:
    """A process that enqueues ten jobs at a time, and notes those whose commit was acknowledged."""

    def __init__(self, product: Product, ledger: Ledger) -> None:
        self._notes = ledger.path.with_name("acknowledged")
        self._notes.touch()
        payload = json.dumps({"ledger": str(ledger.path), "seconds": 0.01})
        self.process = product.start(
            "shell",
            "--no-imports",
            "-c",
            "import threading\n"
            "from django.db import OperationalError, InterfaceError, connection\n"
            "from jobs.enqueue import NewJob, enqueue_many\n"
            f"job = NewJob(type='test.record', payload={payload})\n"
            f"left = {ENQUEUES}\n"
            "while left:\n"
            "    try:\n"
            "        ids = enqueue_many([job] * 10)\n"
            "    except Exception as error:\n"
            "        print(repr(error), flush=True)\n"
            "        connection.close()\n"
            "        threading.Event().wait(0.1)\n"
            "    else:\n"
            "        left -= 1\n"
            f"        with open({str(self._notes)!r}, 'a') as file:\n"
            "            print(*ids, sep='\\n', file=file, flush=True)\n",
        )

    def acknowledged(self) -> list[str]:
        return self._notes.read_text().split()

    def finish(self) -> list[str]:
        """Wait until it has enqueued all; the ids of what it was told is committed."""
        assert self.process.wait() == 0, self.process.text()
        return self.acknowledged()


def at_work(ledger: Ledger, workers: list[Process]) -> None:
    await_true(
        lambda: len(ledger.entries("ended")) > JOBS_BEFORE / 3,
        "the workers are at work",
        evidence=lambda: "\n".join(worker.text() for worker in workers),
    )


@pytest.mark.parametrize("how", ["kill", "immediate"])
def test_when_the_primary_dies_workers_and_web_follow_to_the_standby(
    pair: Pair, product: Product, ledger: Ledger, how: str
) -> None:
    web = Web(product)
    workers = [product.worker() for _ in range(2)]
    web.await_status(200)
    before = ledger.enqueue(product, *[{"seconds": 0.01}] * JOBS_BEFORE)
    producer = Producer(product, ledger)
    at_work(ledger, workers)
    await_true(
        producer.acknowledged, "jobs come in meanwhile", evidence=product.evidence
    )

    pair.kill_primary(how)
    web.await_status(503)
    for worker in workers:
        worker.await_event("jobs.database.unavailable")
    pair.promote()

    during = producer.finish()
    assert len(during) == 10 * ENQUEUES
    # Found by their ids: what was acknowledged is there.
    ledger.await_completed(product, before + during)
    product.await_sql(
        "SELECT WHERE NOT EXISTS (SELECT FROM jobs WHERE status IN ('pending', 'running'))"
    )
    assert ledger.unexplained(product) == []
    web.await_status(200)
    assert [worker.popen.poll() for worker in workers] == [None, None]
    assert {entry.pid for entry in ledger.entries()} == {w.pid for w in workers}
    # They hear of new work there, too.
    for worker in workers:
        worker.await_events("jobs.listener.connected", 2)
    after = ledger.enqueue(product, *[{}] * 20)
    ledger.await_completed(product, after)


def test_a_primary_that_retires_and_stays_up_keeps_no_worker(
    pair: Pair, product: Product, ledger: Ledger
) -> None:
    """Its connections stay open and answer: reading works there, and so does LISTEN."""
    impatient = {"JOBS_POLL_INTERVAL": "1h", PROBE_EVERY: "1"}
    workers = [product.worker(**impatient) for _ in range(2)]
    before = ledger.enqueue(product, *[{"seconds": 0.05}] * JOBS_BEFORE)
    at_work(ledger, workers)
    pair.retire_primary()
    pair.promote()
    ledger.await_completed(product, before)
    assert ledger.unexplained(product) == []
    for worker in workers:
        worker.await_events("jobs.listener.connected", 2)
    # Nothing but a notification starts this within an hour.
    after = ledger.enqueue(product, {})
    ledger.await_completed(product, after)
    assert [worker.popen.poll() for worker in workers] == [None, None]
