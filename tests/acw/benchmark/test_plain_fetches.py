from __future__ import annotations

from pathlib import Path

import pytest

from acw.benchmark import children, fetches
from acw.benchmark.children import Child
from acw.benchmark.errors import BenchmarkError
from acw.benchmark.fetches import Remote
from acw.benchmark.plain_fetches import fetch
from acw.benchmark.scratch import Scratch

FETCHED = Path("refs/remotes/origin/main")


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    remote = Remote(path=tmp_path / "remote.git")
    remote.create()
    return remote


def clone(directory: Path) -> Path:
    """A workspace's clone and its control directory, without anything."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("repository.git", fetches.CONTROL):
        Remote(path=directory / name).git("init", "--quiet", "--bare")
    return directory / "repository.git"


def fetched(path: Path) -> str:
    return (path.with_name(fetches.CONTROL) / FETCHED).read_text().strip()


def test_the_control_directory_has_what_the_remote_has_and_the_clone_its_objects(
    remote: Remote, tmp_path: Path
):
    path, commit = clone(tmp_path), remote.commit("second")
    fetch(path, remote.url)
    assert fetched(path) == commit
    assert Remote(path=path).git("cat-file", "-t", commit) == "commit"


def test_a_fetch_that_fails_says_why(tmp_path: Path):
    with pytest.raises(BenchmarkError, match="nowhere"):
        fetch(clone(tmp_path), (tmp_path / "nowhere").as_uri())


def test_every_workspaces_clone_is_fetched(
    remote: Remote, tmp_path: Path, scratch: Scratch
):
    workspaces = tmp_path / "workspaces"
    paths = [clone(workspaces / name) for name in "abc"]
    commit = remote.commit("second")
    pairs = tmp_path / "pairs"
    pairs.write_text("".join(f"{path}\t{remote.url}\n" for path in paths))
    arguments = [pairs, 2]
    with Child("acw.benchmark.plain_fetches", arguments, scratch.env()) as plain:
        (result,) = children.run([plain])
    assert result["ended"] > result["began"]
    assert {fetched(path) for path in paths} == {commit}
