"""Pruning that is hindered, stopped, or goes on from where another broke."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path

import pytest

from tests.workspaces.conftest import make_idle
from tests.workspaces.factories import WorktreeFactory
from workspaces import locking, paths, prune, worktrees
from workspaces.exceptions import (
    CloneMissing,
    GitError,
    GitStopped,
    RepositoryBusy,
)
from workspaces.models import Workspace, Worktree
from workspaces.prune import Outcome, prune_worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def test_a_clone_that_is_away_is_no_reason_to_forget_a_row(
    worktree: Worktree, path: Path, repository: Repository
):
    repository.directory.rename(repository.directory.with_name("away"))
    with pytest.raises(CloneMissing):
        prune_worktree(worktree.pk)
    assert Worktree.objects.get().state == Worktree.State.READY


def test_it_waits_for_who_works_on_the_repository(
    worktree: Worktree,
    path: Path,
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(prune, "LOCK_WAIT", dt.timedelta(0))
    lock = paths.lock_path(repository.directory)
    with (
        locking.locked(lock, wait=dt.timedelta(0)),
        pytest.raises(RepositoryBusy),
    ):
        prune_worktree(worktree.pk)
    assert Worktree.objects.get().state == Worktree.State.READY


def test_one_that_is_stopped_is_given_back(worktree: Worktree, path: Path):
    with pytest.raises(GitStopped):
        prune_worktree(worktree.pk, stop=lambda: True)
    assert path.exists()
    assert Worktree.objects.get().state == Worktree.State.READY


def test_a_change_at_the_last_moment_brings_it_back(
    worktree: Worktree, path: Path, trash: Path, monkeypatch: pytest.MonkeyPatch
):
    rename = os.rename

    def late(source: Path, target: Path) -> None:
        if source == path:
            (path / "late").touch()
        rename(source, target)

    monkeypatch.setattr(os, "rename", late)
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert (path / "late").exists()
    assert not trash.exists()


@pytest.mark.parametrize("step", ["forget", "delete_tree"])
def test_one_that_breaks_after_the_move_is_finished_by_the_next(
    worktree: Worktree,
    path: Path,
    trash: Path,
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
):
    def fail(*_: object) -> None:
        raise GitError("worktree", "broke")

    with monkeypatch.context() as broken:
        broken.setattr(worktrees, step, fail)
        with pytest.raises(GitError):
            prune_worktree(worktree.pk)
    assert trash.exists()
    assert Worktree.objects.get().state == Worktree.State.PRUNING
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    assert not trash.exists()
    assert not path.exists()
    assert worktrees.registration(repository, path) is None


def test_one_that_was_used_while_its_pruner_died_is_put_back(
    worktree: Worktree, path: Path, trash: Path
):
    trash.parent.mkdir()
    path.rename(trash)
    Worktree.objects.update(state=Worktree.State.PRUNING)
    make_idle(worktree, days=1)
    assert prune_worktree(worktree.pk) is Outcome.NOT_DUE
    assert (path / "README").exists()
    assert Worktree.objects.get().state == Worktree.State.READY


def test_a_directory_that_came_back_meanwhile_is_kept_and_told(
    worktree: Worktree, path: Path, trash: Path
):
    trash.parent.mkdir()
    shutil.copytree(path, trash)
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert path.exists()
    assert trash.exists()
    assert "is there again" in Worktree.objects.get().prune_blocked_reason


def test_what_an_interrupted_creation_left_is_removed(workspace: Workspace):
    left = WorktreeFactory(workspace=workspace, state=Worktree.State.CREATING)
    Path(left.path).mkdir(parents=True)
    assert prune_worktree(left.pk) is Outcome.NOT_DUE
    assert not Path(left.path).exists()
    assert not Worktree.objects.exists()
