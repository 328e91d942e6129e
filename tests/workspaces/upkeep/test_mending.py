from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.workspaces.upkeep.conftest import look, registered
from workspaces import paths
from workspaces.exceptions import WorktreeBusy
from workspaces.models import LedgerEntry, Workspace, Worktree
from workspaces.repository import Repository
from workspaces.upkeep import mending
from workspaces.upkeep.survey import Action, Found

pytestmark = pytest.mark.django_db


def found_of(repository: Repository, worktree: Worktree, action: Action) -> Found:
    (found,) = (e for e in look(repository, worktree) if e.action is action)
    return found


def test_what_was_put_aside_is_in_the_ledger_by_a_name_that_can_be_read(
    workspace: Workspace, worktree: Worktree, path: Path, repository: Repository
):
    os.mkdir(os.fsencode(path.parent) + b"/\xff\x1b[2J")
    found = found_of(repository, worktree, Action.PUT_ASIDE)
    said = mending.mend(repository, workspace, found)
    assert said.isprintable()
    entry = LedgerEntry.objects.get()
    assert (entry.action, entry.workspace) == ("quarantined", "demo")
    assert entry.data["said"] == said
    assert entry.data["cell"] == "-D-"


def test_nothing_is_moved_from_under_who_works_in_it(
    workspace: Workspace, worktree: Worktree, path: Path, repository: Repository
):
    stranger = path.with_name("stranger")
    stranger.mkdir()
    found = found_of(repository, worktree, Action.PUT_ASIDE)
    with subprocess.Popen(["cat"], cwd=stranger, stdin=subprocess.PIPE) as child:
        with pytest.raises(WorktreeBusy, match="until nobody works in it: cat"):
            mending.mend(repository, workspace, found)
        child.kill()
    assert stranger.exists()
    mending.mend(repository, workspace, found)
    assert not stranger.exists()


def test_a_registration_of_an_odd_name_is_kept_by_branches_that_git_accepts(
    workspace: Workspace, worktree: Worktree, path: Path, repository: Repository
):
    admin = registered(repository, path).admin
    odd = admin.with_name("a~b..c.lock")
    admin.rename(odd)
    worktree_row = Worktree.objects.filter(pk=worktree.pk)
    shutil.rmtree(path)
    found = found_of(repository, worktree, Action.MISS)
    assert found.registration is not None
    mending.mend(repository, workspace, found)
    worktree_row.delete()
    found = found_of(repository, worktree, Action.UNREGISTER)
    said = mending.mend(repository, workspace, found)
    assert not odd.exists()
    (stray,) = paths.stray_directory(repository.directory).iterdir()
    assert str(stray) in said
    assert (stray / "HEAD").exists()


def test_a_hold_that_is_taken_meanwhile_is_not_ended(
    workspace: Workspace, worktree: Worktree, path: Path, repository: Repository
):
    path.rename(path.with_name("away"))
    (repository.directory / "worktrees" / "away").rename(repository.directory / "away")
    found = found_of(repository, worktree, Action.MISS)
    Worktree.objects.filter(pk=worktree.pk).update(
        held_by="agent", held_since="2026-01-01T00:00Z"
    )
    mending.mend(repository, workspace, found)
    worktree.refresh_from_db()
    assert (worktree.held_by, worktree.state) == ("agent", Worktree.State.READY)
    assert worktree.state_reason
