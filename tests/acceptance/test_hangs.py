"""Handlers that hang or take long, and processes that make room for new ones, as a supervisor sees them."""

from __future__ import annotations

import datetime as dt
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from acw.embedded.cluster import Cluster
from jobs.claims import LARGEST_BATCH
from tests.acceptance.product import Product, await_true

Install = Callable[..., Product]

QUICK = {
    "JOBS_POLL_INTERVAL": "200ms",
    "JOBS_WORKERS": "1",
    "JOBS_TIMEOUT_GRACE": "500ms",
}
# What runs when it is to stop is cut off, and has not been failed before.
INTERRUPTED = {**QUICK, "JOBS_TIMEOUT_GRACE": "1h", "JOBS_SHUTDOWN_GRACE": "100ms"}


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger"
    path.touch()
    return path


@pytest.fixture
def go(ledger: Path) -> Iterator[Path]:
    """The file by which what hangs is let go."""
    path = ledger.with_name("go")
    yield path
    path.touch()


def hang(product: Product, ledger: Path, go: Path, *, own_thread: bool = False) -> str:
    return product.enqueue(
        "test.hang",
        {"ledger": str(ledger), "until": str(go), "own_thread": own_thread},
    )


def append(product: Product, ledger: Path, line: str) -> str:
    return product.enqueue("test.append", {"ledger": str(ledger), "line": line})


def await_status(product: Product, job_id: str, status: str) -> None:
    product.await_sql("SELECT FROM jobs WHERE id = %s AND status = %s", job_id, status)


def await_failed(product: Product, job_id: str) -> None:
    product.await_sql("SELECT FROM job_attempts WHERE job_id = %s", job_id)


def state(product: Product, job_id: str) -> tuple[str, int]:
    ((name, attempts),) = product.sql(
        "SELECT status, attempts FROM jobs WHERE id = %s", job_id
    )
    return name, attempts


def test_what_hangs_is_failed_and_the_next_jobs_run_on_another_thread(
    install: Install, ledger: Path, go: Path
) -> None:
    product = install(**QUICK)
    worker = product.worker()
    hung = hang(product, ledger, go)
    after = append(product, ledger, "after")
    await_failed(product, hung)
    assert state(product, hung) == ("pending", 1)
    ((error, traceback, late),) = product.sql(
        "SELECT error, traceback, run_at > now() + interval '50 minutes' "
        "FROM job_attempts JOIN jobs ON jobs.id = job_id"
    )
    assert error.startswith("timed out: still running ")
    assert error.endswith(" s after it began, its timeout is 1 s")
    assert "in hang\n    threading.Event().wait(0.02)" in traceback
    assert late
    (event,) = worker.events("job.timeout")
    assert (event["job_id"], event["type"]) == (hung, "test.hang")
    assert (event["level"], event["timeout"]) == ("error", 1.0)
    await_status(product, after, "completed")
    # It comes back, and nothing follows from that.
    go.touch()
    await_true(
        lambda: "came back" in ledger.read_text(), "it came back", evidence=worker.text
    )
    last = append(product, ledger, "last")
    await_status(product, last, "completed")
    assert state(product, hung) == ("pending", 1)
    assert product.sql("SELECT count(*) FROM job_attempts") == [(1,)]
    assert ledger.read_text().splitlines() == ["begun", "after", "came back", "last"]
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.events("job.lease_lost") == []


def test_a_process_of_which_too_many_threads_hang_ends_with_1(
    install: Install, ledger: Path, go: Path
) -> None:
    product = install(**QUICK, JOBS_SHUTDOWN_GRACE="1h")
    worker = product.worker()
    hung = [hang(product, ledger, go) for _ in range(2)]
    assert worker.wait() == 1
    (event,) = worker.events("jobs.module.threads_lost")
    assert (event["level"], event["hanging"]) == ("critical", 2)
    assert len(worker.events("job.timeout")) == 2
    assert [state(product, job) for job in hung] == [("pending", 1)] * 2
    assert product.sql("SELECT FROM job_workers") == []


def test_a_thread_that_hangs_does_not_hold_up_a_stop(
    install: Install, ledger: Path, go: Path
) -> None:
    product = install(**QUICK, JOBS_SHUTDOWN_GRACE="1h")
    worker = product.worker()
    await_failed(product, hang(product, ledger, go))
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.events("jobs.module.shutdown_timeout") == []


def test_not_even_a_handlers_own_thread_keeps_the_process(
    install: Install, ledger: Path, go: Path
) -> None:
    product = install(**INTERRUPTED)
    worker = product.worker()
    hung = hang(product, ledger, go, own_thread=True)
    await_true(ledger.read_text, "the handler began", evidence=product.evidence)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 3
    assert state(product, hung) == ("pending", 0)


def test_after_a_shutdown_that_took_too_long_the_embedded_database_is_stopped(
    tmp_path: Path, ledger: Path, go: Path
) -> None:
    """Its last user stops it at the interpreter's end, which has to be one in order."""
    files = tmp_path / "state/postgres"
    product = Product(
        "",
        tmp_path,
        {
            **INTERRUPTED,
            "ACW_STATE_DIR": str(tmp_path / "state"),
            "ACW_HTTPS": "false",
        },
    )
    cluster = Cluster(files, database="acw")
    try:
        product.manage("migrate")
        worker = product.worker()
        hang(product, ledger, go)
        await_true(ledger.read_text, "the handler began", evidence=worker.text)
        worker.send(signal.SIGTERM)
        assert worker.wait() == 3
        assert not cluster.is_running()
    finally:
        product.close()
        if cluster.is_running():
            cluster.stop("immediate")


def test_a_handler_may_run_for_many_times_its_lease(
    install: Install, ledger: Path
) -> None:
    """As one of half an hour under the default lease: the heartbeat extends it."""
    product = install(
        JOBS_WORKERS="1",
        JOBS_POLL_INTERVAL="200ms",
        JOBS_JOB_REAPER_LEASE_TIMEOUT="2s",
        JOBS_JOB_REAPER_INTERVAL="500ms",
    )
    # The second one is there to take the job from the first, if it may.
    for _ in range(2):
        product.worker()
    job = product.enqueue("test.take_long", {"ledger": str(ledger), "seconds": 12})
    await_status(product, job, "running")
    leases: set[dt.datetime] = set()

    def ended() -> bool:
        with psycopg.connect(product.url, autocommit=True) as connection:
            for (until,) in connection.execute(
                "SELECT lease_until FROM jobs WHERE status = 'running'"
            ):
                leases.add(until)
        return "ended" in ledger.read_text()

    await_true(ended, "the handler ended", evidence=product.evidence)
    await_status(product, job, "completed")
    ((attempts, lease_seq),) = product.sql(
        "SELECT attempts, lease_seq FROM jobs WHERE id = %s", job
    )
    assert (attempts, lease_seq) == (1, 1)
    assert ledger.read_text().splitlines() == ["begun", "ended"]
    # Six leases long: it moved on, and by more than the one lease that it was given.
    assert max(leases) - min(leases) > dt.timedelta(seconds=4)


_OURS = "(SELECT * FROM jobs WHERE type LIKE 'test.%') AS jobs"


def enqueue_lines(
    product: Product, ledger: Path, type_name: str, count: int, **payload: int
) -> None:
    """So many jobs, each of which writes its number into the ledger."""
    common = {"ledger": str(ledger), **payload}
    product.manage(
        "shell",
        "--no-imports",
        "-c",
        "from jobs.enqueue import NewJob, enqueue_many\n"
        f"enqueue_many([NewJob(type={type_name!r}, payload={common!r} | {{'line': str(n)}}) for n in range({count})])",
    )


def run_until_done(product: Product, count: int, *limit: str) -> list[dict[str, Any]]:
    """Run one process after the other, as a supervisor does; return why those ended that left something to do."""
    recycled = []
    while product.sql(f"SELECT FROM {_OURS} WHERE status = 'pending'"):
        process = product.start("runjobs", "--drain", "--workers", "2", *limit)
        assert process.wait() == 0, process.text()
        # What was not done has cost nothing, and nobody holds it.
        assert not product.sql(
            f"SELECT FROM {_OURS} WHERE status <> 'completed' AND (attempts <> 0 OR status <> 'pending')"
        )
        ((done,),) = product.sql(
            f"SELECT count(*) FROM {_OURS} WHERE status = 'completed'"
        )
        if done < count:
            recycled.append(
                {**process.events("jobs.module.recycling")[0], "done": done}
            )
    return recycled


def assert_each_once(product: Product, ledger: Path, count: int) -> None:
    assert sorted(map(int, ledger.read_text().split())) == list(range(count))
    assert product.sql(f"SELECT DISTINCT status, attempts FROM {_OURS}") == [
        ("completed", 1)
    ]
    assert product.sql("SELECT FROM job_attempts") == []


def test_after_so_many_jobs_a_process_makes_room_and_nothing_is_lost_or_done_twice(
    install: Install, ledger: Path
) -> None:
    product = install(JOBS_POLL_INTERVAL="200ms")
    enqueue_lines(product, ledger, "test.append", 2_000)
    worker = product.worker("--workers", "2", "--max-jobs", "300")
    assert worker.wait() == 0
    (event,) = worker.events("jobs.module.recycling")
    assert (event["reason"], event["max_jobs"]) == ("max_jobs", 300)
    done = len(ledger.read_text().split())
    # Each of the two threads may be at a batch.
    assert 300 <= done <= 300 + 2 * LARGEST_BATCH
    for number, later in enumerate(
        run_until_done(product, 2_000, "--max-jobs", "300"), start=2
    ):
        assert later["reason"] == "max_jobs"
        assert number * 300 <= later["done"] <= number * (300 + 2 * LARGEST_BATCH)
    assert_each_once(product, ledger, 2_000)


def test_a_process_that_has_grown_too_large_makes_room(
    install: Install, ledger: Path
) -> None:
    product = install()
    enqueue_lines(product, ledger, "test.eat", 40, megabytes=8)
    recycled = run_until_done(product, 40, "--max-rss", "200MB")
    assert recycled
    for event in recycled:
        assert event["reason"] == "max_rss"
        assert event["rss"] > event["max_rss"] == 200_000_000
    assert_each_once(product, ledger, 40)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--max-jobs", "0"], "--max-jobs: must be a whole number from 1 on"),
        (["--max-rss", "512"], "--max-rss: must be a size with its unit, such as"),
    ],
)
def test_bad_limits_are_refused_by_name(
    install: Install, arguments: list[str], named: str
) -> None:
    assert named in install().manage("runjobs", *arguments, status=2)
