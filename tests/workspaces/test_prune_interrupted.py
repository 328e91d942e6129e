"""Pruning that is hindered, stopped, or goes on from where another broke."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.workspaces.conftest import begin_restoration, make_idle
from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.remote import git
from workspaces import holds, hosts, paths, prune
from workspaces.archiving import snapshot, verifying
from workspaces.exceptions import (
    CloneMissing,
    GitError,
    GitStopped,
    RepositoryBusy,
)
from workspaces.models import LedgerEntry, Workspace, Worktree, WorktreeArchive
from workspaces.plumbing import locking
from workspaces.prune import Outcome, archive_worktree, prune_worktree
from workspaces.pruning import trash
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


def test_one_that_is_stopped_is_put_back(worktree: Worktree, path: Path, trash: Path):
    with pytest.raises(GitStopped):
        prune_worktree(worktree.pk, stop=lambda: True)
    assert path.exists()
    assert not trash.exists()
    assert Worktree.objects.get().state == Worktree.State.READY


def test_a_change_at_the_last_moment_is_archived_too(
    worktree: Worktree, path: Path, trash: Path, monkeypatch: pytest.MonkeyPatch
):
    rename = os.rename

    def late(source: str, target: str, **options: int) -> None:
        if source == path.name:
            (path / "late").touch()
        rename(source, target, **options)

    monkeypatch.setattr(os, "rename", late)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    commit = LedgerEntry.objects.get().commit_sha
    listed = git(
        "ls-tree", "-r", "--name-only", commit, cwd=trash.parents[1] / "repository.git"
    )
    assert "tree/late" in listed.splitlines()


@pytest.mark.parametrize("step", ["archived", "verified"])
def test_one_that_breaks_before_anything_is_deleted_is_put_back(
    worktree: Worktree,
    path: Path,
    trash: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
):
    def fail(*_: object, **__: object) -> None:
        raise GitError("hash-object", "broke")

    module, name = {
        "archived": (snapshot, "take"),
        "verified": (verifying, "verify"),
    }[step]
    before = os.lstat(path).st_ino
    monkeypatch.setattr(module, name, fail)
    with pytest.raises(GitError):
        prune_worktree(worktree.pk)
    assert os.lstat(path).st_ino == before
    assert git("status", "--porcelain", cwd=path) == ""
    assert not trash.exists()
    assert Worktree.objects.get().state == Worktree.State.READY


def test_what_the_verifier_does_not_find_again_is_not_deleted(
    worktree: Worktree, path: Path, trash: Path, monkeypatch: pytest.MonkeyPatch
):
    verify = verifying.verify

    def after_a_change(*arguments: object, at: Path, **options: object) -> str:
        (at / "README").write_text("written by who had it open\n")
        return verify(*arguments, at=at, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(verifying, "verify", after_a_change)
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert (path / "README").read_text() == "written by who had it open\n"
    assert not trash.exists()
    assert "README" in Worktree.objects.get().prune_blocked_reason


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
    assert not trash.exists()
    assert "was there again" in Worktree.objects.get().prune_blocked_reason
    assert len(list((trash.parents[1] / ".stray").iterdir())) == 1
    make_idle(worktree, days=31)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED


@pytest.mark.parametrize("used", [False, True], ids=["still idle", "used again"])
def test_what_a_stranger_has_put_in_its_place_is_put_aside_and_it_is_put_back(
    worktree: Worktree, path: Path, trash: Path, used: bool
):
    """Such as a tool that writes to a path which it knows, and makes directories on the way."""
    (path / "draft").touch()
    trash.parent.mkdir()
    path.rename(trash)
    path.mkdir()
    (path / "stranger").touch()
    Worktree.objects.update(state=Worktree.State.PRUNING)
    if used:
        make_idle(worktree, days=1)
    expected = Outcome.NOT_DUE if used else Outcome.BLOCKED
    assert prune_worktree(worktree.pk) is expected
    assert (path / "draft").exists()
    assert git("status", "--porcelain", cwd=path) == "?? draft"
    assert not trash.exists()
    (aside,) = (trash.parents[1] / ".stray").iterdir()
    assert os.listdir(aside) == ["stranger"]
    assert LedgerEntry.objects.get().data["moved_to"] == str(aside)


def test_where_it_came_back_and_is_used_again_what_it_was_is_put_aside(
    worktree: Worktree, path: Path, trash: Path, repository: Repository
):
    trash.parent.mkdir()
    shutil.copytree(path, trash)
    (trash / "draft").touch()
    Worktree.objects.update(state=Worktree.State.PRUNING)
    make_idle(worktree, days=1)
    assert prune_worktree(worktree.pk) is Outcome.NOT_DUE
    assert path.exists()
    (aside,) = paths.stray_directory(repository.directory).iterdir()
    assert (aside / "draft").exists()
    assert LedgerEntry.objects.get().action == "quarantined"


def test_an_archive_that_the_database_does_not_know_deletes_nothing(
    worktree: Worktree, path: Path, trash: Path
):
    """As where the database was restored from a backup."""
    trash.parent.mkdir()
    left = trash.with_name(f"{trash.name}.4711")
    path.rename(left)
    Worktree.objects.update(state=Worktree.State.PRUNING)
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert (left / "README").exists()
    assert "no such archive" in Worktree.objects.get().prune_blocked_reason


def test_what_an_interrupted_creation_left_is_removed(workspace: Workspace):
    left = WorktreeFactory(workspace=workspace, state=Worktree.State.CREATING)
    Path(left.path).mkdir(parents=True)
    assert prune_worktree(left.pk) is Outcome.NOT_DUE
    assert not Path(left.path).exists()
    assert not Worktree.objects.exists()


def use(worktree: Worktree) -> int:
    """Hold it and let it go; the number of that hold."""
    held = holds.acquire_again(worktree.pk, holder="other")
    return holds.release(held.pk).fencing_no


def test_a_hold_between_the_look_at_it_and_its_removal_is_remembered(
    worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    """No number of a hold is given twice, and who had it last gets it again."""
    check = hosts.check
    later: list[int] = []

    def late(workspace: Workspace) -> None:
        monkeypatch.setattr(hosts, "check", check)
        later.append(use(worktree))
        check(workspace)

    monkeypatch.setattr(hosts, "check", late)
    archive_worktree(worktree.pk, actor="ada")
    again = holds.acquire(worktree.workspace, holder="other")
    assert again.pk == worktree.pk
    assert [again.fencing_no] == [later[0] + 1]


def test_a_hold_after_the_last_archive_is_remembered_where_nothing_was_left(
    worktree: Worktree, path: Path, repository: Repository
):
    archive_worktree(worktree.pk, actor="ada")
    last = use(worktree)
    git("worktree", "remove", "-f", "-f", str(path), cwd=repository.path)
    make_idle(worktree, days=31)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    assert use(worktree) == last + 1


def test_a_restoration_that_was_interrupted_and_cannot_be_finished_is_given_up(
    worktree: Worktree, repository: Repository
):
    """It would fail with every tick, and nobody could have the worktree."""
    archive = archive_worktree(worktree.pk, actor="ada")
    assert archive is not None
    WorktreeArchive.objects.update(commit_sha="1" * 40)
    begin_restoration(worktree)
    assert prune_worktree(worktree.pk) is Outcome.NOT_DUE
    row = Worktree.objects.get()
    assert row.state == Worktree.State.MISSING
    assert "is not in the clone" in row.state_reason
    assert use(worktree) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "I/O error")])
def test_what_breaks_off_when_it_is_archived_already_gives_no_row_back_without_its_files(
    worktree: Worktree,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
):
    (path / "untracked").write_text("work\n")
    give_up = trash.give_up

    def breaking_off(*arguments: Any) -> None:
        give_up(*arguments)
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(trash, "give_up", breaking_off)
        with pytest.raises(type(error)):
            archive_worktree(worktree.pk, actor="ada")
    assert Worktree.objects.get().state == Worktree.State.PRUNING
    holds.acquire_again(worktree.pk, holder="agent")
    assert (path / "untracked").read_text() == "work\n"
    assert LedgerEntry.objects.filter(action="pruned").count() == 1
