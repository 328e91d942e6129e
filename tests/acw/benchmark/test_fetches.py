from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from acw.benchmark import fetches
from acw.benchmark.errors import BenchmarkError, CountError
from acw.benchmark.fetches import Remote
from acw.benchmark.scratch import Scratch


def test_every_clone_is_fetched_by_a_job(
    scratch: Scratch,
    connection: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(fetches, "JOBS_SHORT", 3)
    (figure,) = fetches.measure(scratch, rounds=1, short=True)
    assert figure.ratio is not None
    jobs = connection.execute(
        "SELECT status, count(*) FROM jobs WHERE type = 'workspace.fetch' GROUP BY 1"
    )
    assert jobs.fetchall() == [("completed", 3)]
    failing = "SELECT count(*) FROM workspaces WHERE failing_since IS NOT NULL"
    assert connection.execute(failing).fetchone() == (0,)


def test_a_clone_without_the_newest_commit_is_no_figure(tmp_path: Path):
    remote = Remote(path=tmp_path / "remote.git")
    remote.create()
    with pytest.raises(CountError, match="1 clones were fetched, and 0"):
        fetches.check([remote.path], remote.commit("second"))


def test_what_git_complains_of_is_told(tmp_path: Path):
    with pytest.raises(BenchmarkError, match="not a git repository"):
        Remote(path=tmp_path / "nowhere").commit("first")
