from __future__ import annotations

import os
import time
from pathlib import Path

import psycopg
import pytest

from acw.benchmark.errors import BenchmarkError
from acw.benchmark.scratch import Scratch
from acw.benchmark.workers import Workers
from jobs.testing import wait_until

LONG_AGO = time.time() - 365 * 24 * 3600
PATIENCE = 30.0


def forgotten_file(data_directory: Path) -> Path:
    """A file without a row, such as the attachment cleanup of a worker removes."""
    file = data_directory / "attachments" / "ab" / "abandoned"
    file.parent.mkdir(parents=True)
    file.touch()
    os.utime(file, (LONG_AGO, LONG_AGO))
    return file


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_workers_tidy_the_benchmarks_directory_and_end_with_the_benchmark(
    scratch: Scratch,
    connection: psycopg.Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("ACW_DATA_DIR", str(tmp_path))
    operators = forgotten_file(tmp_path)
    own = forgotten_file(scratch.directory / "data")
    # A database that never had an attachment would leave the files to whose they are.
    connection.execute("SELECT nextval(pg_get_serial_sequence('attachments', 'id'))")
    with Workers(scratch, threads=1) as workers:
        (pid,) = workers.pids
        listed = wait_until(
            lambda: connection.execute(
                "SELECT pid, threads FROM job_workers"
            ).fetchall(),
            "announced",
            timeout=PATIENCE,
        )
        assert listed == [(pid, 1)]
        # Every runner has ticked, and what the cleanup is for is gone where it may tidy.
        wait_until(lambda: not own.exists(), "cleaned up", timeout=PATIENCE)
        assert operators.exists()

        assert 0 < workers.rss()[0] <= workers.peak_rss()[0]
        assert workers.cpu_seconds() > 0

        workers.pause()
        wait_until(lambda: state(pid) == "T", "paused", timeout=PATIENCE)
        workers.resume()
        wait_until(lambda: state(pid) != "T", "resumed", timeout=PATIENCE)

        # As when this process is killed: the other end of the pipe closes.
        stdin = workers._processes[0].stdin
        assert stdin is not None
        stdin.close()
        assert workers._processes[0].wait(PATIENCE) == 1
        with pytest.raises(BenchmarkError, match="has ended with status 1"):
            workers.check()


def test_a_worker_that_does_not_come_up_says_why(scratch: Scratch):
    with (
        pytest.raises(BenchmarkError, match="JOBS_WORKERS cannot be 'many'"),
        Workers(scratch, JOBS_WORKERS="many"),
    ):
        pass
