from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.conftest import Told
from tests.workspaces.factories import AdminFactory
from tests.workspaces.remote import Remote, git
from workspaces import clones, holds
from workspaces.exceptions import EmptyRepository
from workspaces.fetch import fetch_workspace
from workspaces.fetching import default_branches
from workspaces.models import Workspace
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def followed(repository: Repository, remote: Remote) -> str:
    repository.fetch(remote.url, timeout=None, stop=None)
    return default_branches.follow(repository, remote.url, before="main")


def head(repository: Repository) -> str:
    return git("symbolic-ref", "refs/remotes/origin/HEAD", cwd=repository.path)


def test_while_it_is_there_it_stays(repository: Repository, remote: Remote):
    remote.push("file", branch="other")
    git("symbolic-ref", "HEAD", "refs/heads/other", cwd=remote.path)
    assert followed(repository, remote) == "main"


def test_a_new_name_is_asked_for(repository: Repository, remote: Remote):
    git("branch", "--move", "main", "trunk", cwd=remote.path)
    assert followed(repository, remote) == "trunk"
    assert head(repository) == "refs/remotes/origin/trunk"


def test_what_another_clone_was_told_is_taken(repository: Repository, remote: Remote):
    for branch in ("one", "two"):
        remote.push(f"{branch}.txt", branch=branch)
    git("update-ref", "-d", "refs/heads/main", cwd=remote.path)
    repository.fetch(remote.url, timeout=None, stop=None)
    remote.vanish()
    taken = default_branches.follow(repository, remote.url, before="main", known="two")
    assert taken == "two"
    assert head(repository) == "refs/remotes/origin/two"


@pytest.mark.parametrize(
    ("branches", "expected"),
    [
        pytest.param(["only"], "only", id="the only one"),
        pytest.param(["a", "develop", "z"], "develop", id="a usual name"),
        pytest.param(["a", "z"], "", id="none of them"),
    ],
)
def test_where_the_remote_names_none_it_is(
    repository: Repository, remote: Remote, branches: list[str], expected: str
):
    for branch in branches:
        remote.push(f"{branch}.txt", branch=branch)
    git("update-ref", "-d", "refs/heads/main", cwd=remote.path)
    assert followed(repository, remote) == expected


def test_a_remote_without_branches_is_not_asked(tmp_path: Path):
    git("init", "--quiet", "--bare", str(tmp_path / "empty.git"))
    workspace = clones.add_workspace("demo", str(tmp_path / "empty.git"))
    repository = Repository(Path(workspace.path).parent)
    (tmp_path / "empty.git").rename(tmp_path / "gone.git")
    assert default_branches.follow(repository, workspace.url, before="") == ""


def test_nothing_can_be_acquired_of_an_empty_remote_until_it_has_a_commit(
    tmp_path: Path, remote: Remote
):
    empty = tmp_path / "empty.git"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(empty))
    workspace = clones.add_workspace("demo", str(empty))
    assert fetch_workspace(workspace).error == ""
    with pytest.raises(EmptyRepository, match="no default branch"):
        holds.acquire(workspace, holder="agent")
    git("push", "--quiet", str(empty), "main", cwd=remote.work)
    fetch_workspace(workspace)
    assert holds.acquire(clones.find("demo"), holder="agent").held_by == "agent"


def test_after_a_renaming_worktrees_are_acquired_as_before_and_it_is_told_once(
    workspace: Workspace, remote: Remote, told: Told
):
    AdminFactory()
    remote.push("file", branch="trunk")
    git("update-ref", "-d", "refs/heads/main", cwd=remote.path)
    for _ in range(3):
        fetch_workspace(clones.find("demo"))
    assert clones.find("demo").default_branch == "trunk"
    assert len(told("workspace.default_branch_changed")) == 1
    held = holds.acquire(clones.find("demo"), holder="agent")
    assert (Path(held.path) / "file").exists()
