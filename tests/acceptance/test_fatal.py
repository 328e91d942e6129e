"""Handlers that end their process: only they pay for it, and the table says what happened."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.product import Product, await_true

Install = Callable[..., Product]

ONE_THREAD = {
    "JOBS_POLL_INTERVAL": "200ms",
    "JOBS_WORKERS": "1",
    "JOBS_BACKOFF_BASE": "100ms",
}
QUICK = 120


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger"
    path.touch()
    return path


def enqueue(product: Product, ledger: Path, *ways: str) -> None:
    """All in one transaction, in this order."""
    jobs = [
        {"ledger": str(ledger), "line": way or f"quick {number}", "how": way}
        for number, way in enumerate(ways)
    ]
    code = (
        "import json; from jobs.enqueue import NewJob, enqueue_many; "
        f"enqueue_many([NewJob(type='test.fatal', payload=p) for p in json.loads({json.dumps(jobs)!r})])"
    )
    product.manage("shell", "--no-imports", "-c", code)


def work_until_done(product: Product, statuses: set[int]) -> None:
    """As a supervisor does: a new worker for each that ends, which is to end with one of these statuses."""
    while True:
        worker = product.start("runjobs", "--workers", "1")

        def settled(worker=worker) -> bool:
            live = "SELECT FROM jobs WHERE status IN ('pending', 'running')"
            return worker.popen.poll() is not None or not product.sql(live)

        await_true(settled, "the jobs or the worker end", evidence=product.evidence)
        if worker.popen.poll() is None:
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0
            return
        assert worker.wait() in statuses


@pytest.mark.parametrize(
    ("how", "exit_status", "said"),
    [
        ("os._exit", 7, "without a word, as by os._exit"),
        ("segmentation fault", -signal.SIGSEGV, "Segmentation fault"),
        ("out of memory", -signal.SIGKILL, "for want of memory"),
    ],
)
def test_it_goes_dead_after_its_attempts_and_its_batch_mates_lose_nothing(
    install: Install, ledger: Path, how: str, exit_status: int, said: str
) -> None:
    # The lease outlasts the test: nothing here waits for one to run out.
    product = install(**ONE_THREAD, JOBS_JOB_REAPER_LEASE_TIMEOUT="10m")
    enqueue(product, ledger, *[""] * (QUICK // 2), how, *[""] * (QUICK // 2))
    work_until_done(product, {exit_status})
    ((attempts, error, traceback),) = product.sql(
        "SELECT attempts, last_error, traceback FROM jobs JOIN job_attempts ON job_id = jobs.id "
        "WHERE status = 'dead' AND number = 3"
    )
    assert attempts == 3
    assert said in error
    assert ("fatal/handlers.py" in traceback) == (how == "segmentation fault")
    assert product.sql(
        "SELECT status, attempts, count(*) FROM jobs WHERE type = 'test.fatal' AND status <> 'dead' GROUP BY 1, 2"
    ) == [("completed", 1, QUICK)]
    # What was done and not yet written when the process died was not done again.
    done = Counter(ledger.read_text().splitlines())
    assert done.pop(how) == 3
    assert len(done) == QUICK
    assert set(done.values()) == {1}


def test_another_worker_of_the_host_takes_back_what_a_killed_one_held(
    install: Install, ledger: Path
) -> None:
    product = install(**ONE_THREAD, JOBS_JOB_REAPER_LEASE_TIMEOUT="10m")
    survivor = product.worker("--queues", "other")
    victim = product.worker()
    hold = product.enqueue(
        "test.hold", {"ledger": str(ledger), "until": str(ledger) + ".go"}
    )
    product.await_sql("SELECT FROM jobs WHERE id = %s AND status = 'running'", hold)
    await_true(ledger.read_text, "the handler began", evidence=product.evidence)
    victim.kill()
    lost = survivor.await_event("jobs.worker_lost")
    assert lost["begun"] == 1
    ((status, attempts, error),) = product.sql(
        "SELECT status, attempts, last_error FROM jobs WHERE id = %s", hold
    )
    assert (status, attempts) == ("pending", 1)
    assert error.startswith("worker lost: ")
