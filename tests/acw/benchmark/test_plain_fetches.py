from __future__ import annotations

from pathlib import Path

import pytest

from acw.benchmark import children
from acw.benchmark.children import Child
from acw.benchmark.errors import BenchmarkError
from acw.benchmark.fetches import Remote
from acw.benchmark.plain_fetches import fetch
from acw.benchmark.scratch import Scratch


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    remote = Remote(path=tmp_path / "remote.git")
    remote.create()
    return remote


def clone(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    empty = Remote(path=directory / "repository.git")
    empty.create()
    return empty.path


def fetched(path: Path) -> str:
    return (path / "refs/remotes/origin/main").read_text().strip()


def test_the_clone_has_what_the_remote_has(remote: Remote, tmp_path: Path):
    path, commit = clone(tmp_path), remote.commit("second")
    fetch(path, remote.url)
    assert fetched(path) == commit


def test_a_fetch_that_fails_says_why(tmp_path: Path):
    with pytest.raises(BenchmarkError, match="nowhere"):
        fetch(clone(tmp_path), (tmp_path / "nowhere").as_uri())


def test_every_workspaces_clone_is_fetched(
    remote: Remote, tmp_path: Path, scratch: Scratch
):
    workspaces = tmp_path / "workspaces"
    paths = [clone(workspaces / name) for name in "abc"]
    commit = remote.commit("second")
    arguments = [remote.url, 2, workspaces]
    with Child("acw.benchmark.plain_fetches", arguments, scratch.env()) as fetches:
        (result,) = children.run([fetches])
    assert result["ended"] > result["began"]
    assert {fetched(path) for path in paths} == {commit}
