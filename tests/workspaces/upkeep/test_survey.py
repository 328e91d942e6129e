from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.workspaces.upkeep.conftest import look, registered
from workspaces.models import Worktree
from workspaces.repository import Repository
from workspaces.upkeep.survey import REASON, Action, Cell

pytestmark = pytest.mark.django_db


def test_looking_runs_no_git_and_changes_nothing(
    worktree: Worktree,
    path: Path,
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("PATH", "/nowhere")
    (path.parent / "unknown").mkdir()
    found = {each.cell: each.action for each in look(repository, worktree)}
    assert found == {Cell.ALL: Action.NOTHING, Cell.DIRECTORY: Action.PUT_ASIDE}
    assert (path.parent / "unknown").exists()


def test_a_directory_that_a_link_stands_for_is_taken_out_of_use(
    worktree: Worktree, path: Path, repository: Repository, tmp_path: Path
):
    path.rename(tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    (found,) = look(repository, worktree)
    assert (found.cell, found.action) == (Cell.ALL, Action.QUARANTINE)
    assert "symbolic link" in found.why


def test_a_link_in_the_place_of_all_worktrees_is_not_followed(
    worktree: Worktree, path: Path, repository: Repository, tmp_path: Path
):
    (path.parent / "unknown").mkdir()
    path.parent.rename(tmp_path / "moved")
    (repository.directory / "worktrees").symlink_to(tmp_path / "moved")
    (found,) = look(repository, worktree)
    assert found.action is Action.QUARANTINE


def test_a_registration_that_was_moved_is_found_by_the_directory(
    worktree: Worktree, path: Path, repository: Repository
):
    admin = registered(repository, path).admin
    (admin / "gitdir").write_text("/somewhere/else/.git\n")
    (found,) = look(repository, worktree)
    assert (found.cell, found.action) == (Cell.ROW_DIRECTORY, Action.REPOINT)


def test_what_somebody_else_took_out_of_use_is_not_taken_back(
    worktree: Worktree, repository: Repository
):
    rows = Worktree.objects.filter(pk=worktree.pk)
    for reason, action in (
        ("an operator looks at it", Action.NOTHING),
        (f"{REASON}it is no directory", Action.TAKE_BACK),
    ):
        rows.update(state=Worktree.State.QUARANTINED, state_reason=reason)
        (found,) = look(repository, worktree)
        assert found.action is action


@pytest.mark.parametrize("state", ["creating", "pruning", "restoring"])
def test_what_is_under_way_is_not_judged(
    worktree: Worktree, path: Path, repository: Repository, state: str
):
    Worktree.objects.filter(pk=worktree.pk).update(state=state)
    trash = repository.directory / "trash" / str(worktree.pk)
    trash.parent.mkdir()
    path.rename(trash)
    (found,) = look(repository, worktree)
    assert found.action is Action.FINISH


def test_a_name_that_is_no_text_can_be_told(
    worktree: Worktree, path: Path, repository: Repository
):
    os.mkdir(os.fsencode(path.parent) + b"/\xff\x1b[2J")
    found = [each for each in look(repository, worktree) if each.worktree is None]
    assert found[0].name.isprintable()
    found[0].name.encode()
