"""What a workspace is not removed for, wherever an interruption or a pass has put it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.remote import commit, git
from workspaces import prune, unsaved
from workspaces.models import Workspace, Worktree
from workspaces.pruning import trash
from workspaces.repository import Repository
from workspaces.upkeep import reconcile

pytestmark = pytest.mark.django_db


def test_of_what_the_remote_has_nothing_is_said(
    workspace: Workspace, worktree: Worktree, repository: Repository
):
    assert unsaved.work_of(workspace, repository) == []


def test_work_in_the_trash_of_a_pruning_that_was_interrupted_is_put_back_and_seen(
    workspace: Workspace, worktree: Worktree, repository: Repository
):
    path = Path(worktree.path)
    (path / "draft").touch()
    Worktree.objects.update(state=Worktree.State.PRUNING)
    trash.put_in(repository, worktree.pk, path)
    assert unsaved.work_of(workspace, repository) == [
        "worktree acw/work: 1 untracked file (draft)"
    ]
    assert (path / "draft").exists()


def test_what_an_interrupted_creation_has_left_is_no_work(
    workspace: Workspace, repository: Repository
):
    left = WorktreeFactory(workspace=workspace, state=Worktree.State.CREATING)
    Path(left.path).mkdir(parents=True)
    assert unsaved.work_of(workspace, repository) == []


def test_what_has_no_row_and_what_was_put_aside_is_work(
    workspace: Workspace, worktree: Worktree, repository: Repository
):
    stranger = Path(worktree.path).with_name("stranger")
    stranger.mkdir()
    (stranger / "draft").touch()
    assert unsaved.work_of(workspace, repository) == [
        "stranger: no worktree has this directory"
    ]
    reconcile.reconcile()
    assert not stranger.exists()
    (said,) = unsaved.work_of(workspace, repository)
    assert said.startswith("stranger-")
    assert said.endswith(": put aside, in .stray")


def test_archives_and_commits_on_no_branch_of_the_remote_are_work(
    workspace: Workspace, worktree: Worktree, repository: Repository
):
    path = Path(worktree.path)
    commit(path)
    git("checkout", "--quiet", "--detach", "origin/main", cwd=path)
    archive = prune.archive_worktree(worktree.pk, actor="ada")
    assert archive is not None
    said = unsaved.work_of(workspace, repository)
    assert said[0] == f"archive {archive.pk} of worktree acw/work"
    assert "refs/heads/acw/work" in said[1]
    shutil.rmtree(repository.path)
    assert unsaved.work_of(workspace, repository) == said[:1]


def test_what_lies_beside_a_clone_that_is_gone_may_be_work(
    workspace: Workspace, worktree: Worktree, repository: Repository
):
    name = Path(worktree.path).name
    shutil.rmtree(repository.path)
    assert unsaved.work_of(workspace, repository) == [
        f"worktrees/{name}: is there, and its clone is gone"
    ]


def test_commits_of_a_worktree_that_an_agent_has_made_elsewhere_are_work(
    workspace: Workspace, worktree: Worktree, repository: Repository, tmp_path: Path
):
    elsewhere = tmp_path / "elsewhere"
    git(
        "worktree",
        "add",
        "--quiet",
        "--detach",
        str(elsewhere),
        cwd=Path(worktree.path),
    )
    assert unsaved.work_of(workspace, repository) == []
    commit(elsewhere, "draft")
    (said,) = unsaved.work_of(workspace, repository)
    assert said.startswith(f"{elsewhere}: 1 commit")
    shutil.rmtree(elsewhere)
    (said,) = unsaved.work_of(workspace, repository)
    assert said.startswith(f"{elsewhere}: 1 commit")
