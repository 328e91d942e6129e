from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from acw.benchmark import fetches
from acw.benchmark.errors import BenchmarkError, CountError
from acw.benchmark.fetches import Remote
from acw.benchmark.scratch import Scratch


def test_every_clone_is_fetched_by_a_job_of_its_own(
    scratch: Scratch,
    connection: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(fetches, "JOBS_SHORT", 3)
    figures = fetches.measure(scratch, rounds=1, short=True)
    assert [figure.ratio is not None for figure in figures] == [True, True]
    jobs = connection.execute(
        "SELECT status, count(*) FROM jobs WHERE type = 'workspace.fetch' GROUP BY 1"
    )
    # Of the last figure, all of one remote, which is a path.
    assert jobs.fetchall() == [("completed", 3)]
    failing = "SELECT count(*) FROM workspaces WHERE failing_since IS NOT NULL"
    assert connection.execute(failing).fetchone() == (0,)


def test_each_remote_gets_the_same_commit(tmp_path: Path):
    remotes = fetches.make_remotes(tmp_path / "remotes", 3)
    commit = fetches.commit_everywhere(remotes, "second")
    heads = {remote.git("rev-parse", "main") for remote in remotes}
    assert heads == {commit}
    assert {remote.git("fsck") for remote in remotes} == {""}


def test_a_clone_without_the_newest_commit_is_no_figure(tmp_path: Path):
    remote = Remote(path=tmp_path / "remote.git")
    remote.create()
    with pytest.raises(CountError, match="1 clones were fetched, and 0"):
        fetches.check([remote.path], remote.commit("second"))


def test_what_git_complains_of_is_told(tmp_path: Path):
    with pytest.raises(BenchmarkError, match="not a git repository"):
        Remote(path=tmp_path / "nowhere").commit("first")
