from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from notify.models import AuditEntry
from tests.workspaces.archiving import zoo
from tests.workspaces.conftest import Told
from tests.workspaces.factories import AdminFactory, WorktreeFactory
from tests.workspaces.remote import commit, git
from workspaces import holds, paths
from workspaces.archiving import branches, rebuilding, restoring, unpacking
from workspaces.exceptions import (
    ArchiveExpired,
    ConfigTampered,
    UnknownArchive,
    WorktreeBusy,
    WorktreeError,
    WorktreeQuarantined,
)
from workspaces.models import (
    Conversation,
    LedgerEntry,
    Workspace,
    Worktree,
    WorktreeArchive,
)
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def test_everything_comes_back_bit_for_bit_after_git_has_forgotten_all_it_can(
    repository: Repository, worktree: Worktree
):
    path = Path(worktree.path)
    zoo.fill(path)
    amended_away = git("rev-parse", "HEAD@{2}", cwd=path)
    before, status = (
        zoo.listed(path),
        zoo.status(path),
    )
    archive = zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    zoo.clean_out(repository)
    restored = restoring.restore(worktree.pk, actor="somebody")
    assert (restored.pk, restored.path, restored.state) == (
        worktree.pk,
        worktree.path,
        Worktree.State.READY,
    )
    assert zoo.listed(path).digest == before.digest == archive.manifest_digest
    assert zoo.status(path) == status
    assert git("branch", "--show-current", cwd=path) == "acw/work"
    assert git("cat-file", "-t", amended_away, cwd=path) == "commit"
    assert git("log", "-1", "--format=%s", cwd=path) == "all"
    assert git("fsck", "--no-dangling", cwd=path) == ""


@pytest.fixture
def gone(repository: Repository, worktree: Worktree) -> WorktreeArchive:
    """The archive of a worktree with a commit and an untracked file, that is gone."""
    path = Path(worktree.path)
    commit(path, "committed", "1\n")
    (path / "untracked").write_text("2\n")
    archive = zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    return archive


def restore(archive: WorktreeArchive) -> Worktree:
    return restoring.restore(archive.worktree_id, actor="somebody")


def left_over(repository: Repository) -> list[Path]:
    """What no interruption may leave behind."""
    return [
        *paths.archiving_path(repository.directory).iterdir(),
        *(repository.path / "worktrees").glob("*"),
        *(repository.directory / "worktrees").glob("*"),
    ]


def test_it_is_free_and_in_use_again_and_everybody_is_told(
    repository: Repository, gone: WorktreeArchive, told: Told, workspace: Workspace
):
    AdminFactory()
    conversation = Conversation.objects.create(title="about it")
    WorktreeArchive.objects.update(conversation_ids=[conversation.pk, 12345])
    restored = restore(gone)
    assert (restored.held_by, restored.kept_until) == (None, None)
    assert restored.last_held_by == "agent"
    assert restored.fencing_no == 1
    assert Worktree.objects.filter(
        pk=restored.pk, last_used_at__gt=Now() - dt.timedelta(minutes=1)
    ).exists()
    conversation.refresh_from_db()
    assert conversation.worktree_id == restored.pk
    gone.refresh_from_db()
    assert gone.state == WorktreeArchive.State.RESTORED
    assert gone.restored_at is not None
    assert repository.commit_of(gone.ref) == gone.commit_sha
    entry = LedgerEntry.objects.get(action=LedgerEntry.Action.RESTORED)
    assert (entry.worktree_id, entry.archive_id, entry.actor) == (
        restored.pk,
        gone.pk,
        "somebody",
    )
    assert AuditEntry.objects.filter(action="worktree.restored").count() == 1
    assert len(told("worktree.restored")) == 1
    path = Path(restored.path)
    git("worktree", "prune", "--expire=now", cwd=repository.path)
    assert git("worktree", "list", cwd=repository.path).count("acw/work") == 1
    assert holds.acquire(workspace, holder="x", branch="acw/work").path == str(path)


def test_one_that_is_there_is_returned_as_it_is(worktree: Worktree):
    again = restoring.restore(worktree.pk, actor="somebody")
    assert (again.pk, again.fencing_no) == (worktree.pk, worktree.fencing_no)
    assert not LedgerEntry.objects.exists()


def test_one_that_git_has_forgotten_since_is_newer_than_its_archive(
    repository: Repository, gone: WorktreeArchive
):
    path = Path(restore(gone).path)
    (path / "untracked").write_text("newer\n")
    shutil.rmtree(repository.path / "worktrees")
    assert restore(gone).path == str(path)
    assert (path / "untracked").read_text() == "newer\n"
    assert git("status", "--porcelain", cwd=path) == "?? untracked"
    assert not paths.stray_directory(repository.directory).exists()


def test_a_branch_that_moved_or_is_used_elsewhere_is_left_alone_and_nothing_is_lost(
    repository: Repository, gone: WorktreeArchive, workspace: Workspace
):
    mine = repository.local_branch("acw/work")
    other = holds.acquire(workspace, holder="other", branch="elsewhere")
    git("checkout", "--quiet", "acw/work", cwd=Path(other.path))
    moved = commit(Path(other.path), "moved")
    restored = restore(gone)
    path = Path(restored.path)
    branch = f"acw/restored-{restored.pk}"
    assert restored.branch == git("branch", "--show-current", cwd=path) == branch
    assert git("rev-parse", "HEAD", cwd=path) == mine
    assert git("status", "--porcelain", cwd=path) == "?? untracked"
    assert repository.local_branch("acw/work") == moved
    assert branch in restored.state_reason
    assert "acw/work" in restored.state_reason


def test_a_branch_that_is_gone_is_made_again(
    repository: Repository, gone: WorktreeArchive
):
    zoo.clean_out(repository)
    restored = restore(gone)
    assert (restored.branch, restored.state_reason) == ("acw/work", "")
    assert git("log", "-1", "--format=%s acw/work", "acw/work", cwd=repository.path)


def test_a_rebase_in_progress_can_be_ended_after_its_branch_and_stashes_are_gone(
    repository: Repository, worktree: Worktree
):
    path = Path(worktree.path)
    theirs = commit(path, "both", "theirs\n")
    git("reset", "--quiet", "--hard", "HEAD~1", cwd=path)
    tip = commit(path, "both", "ours\n")
    (path / "README").write_text("stashed\n")
    git("stash", "--quiet", cwd=path)
    stash = git("rev-parse", "refs/stash", cwd=path)
    with pytest.raises(subprocess.CalledProcessError):
        git("rebase", theirs, cwd=path)
    zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    git("update-ref", "-d", "refs/stash", cwd=repository.path)
    zoo.clean_out(repository)

    restored = restoring.restore(worktree.pk, actor="somebody")
    assert (restored.branch, restored.state_reason) == ("acw/work", "")
    assert git("cat-file", "-t", stash, cwd=path) == "commit"
    assert repository.local_branch("acw/work") == tip
    (path / "both").write_text("resolved\n")
    git("add", "both", cwd=path)
    git("-c", "core.editor=true", "rebase", "--continue", cwd=path)
    assert git("branch", "--show-current", cwd=path) == "acw/work"
    assert git("rev-parse", "HEAD^", cwd=path) == theirs


def test_what_stands_in_its_place_is_put_aside(
    repository: Repository, gone: WorktreeArchive
):
    Path(gone.path).mkdir()
    (Path(gone.path) / "somebodys").write_text("work")
    restored = restore(gone)
    assert (Path(restored.path) / "untracked").exists()
    aside = [*paths.stray_directory(repository.directory).glob("*/somebodys")]
    assert len(aside) == 1
    entry = LedgerEntry.objects.get(action=LedgerEntry.Action.QUARANTINED)
    assert entry.data["moved_to"] == str(aside[0].parent)


def test_a_path_that_another_row_has_is_refused(
    repository: Repository, gone: WorktreeArchive, workspace: Workspace
):
    WorktreeFactory(workspace=workspace, path=gone.path)
    with pytest.raises(WorktreeError, match="another worktree has that path"):
        restore(gone)
    assert left_over(repository) == []


@pytest.mark.parametrize(
    ("state", "error", "said"),
    [
        (Worktree.State.PRUNING, WorktreeBusy, "was interrupted: acquire it"),
        (Worktree.State.CREATING, WorktreeBusy, "was interrupted: acquire it"),
        (Worktree.State.QUARANTINED, WorktreeQuarantined, "taken out of use"),
    ],
)
def test_a_row_that_somebody_worked_on_is_left_alone(
    worktree: Worktree, state: Worktree.State, error: type[Exception], said: str
):
    Worktree.objects.update(state=state)
    with pytest.raises(error, match=said):
        restoring.restore(worktree.pk, actor="somebody")


def test_one_that_is_missing_is_restored_into_its_row(
    repository: Repository, worktree: Worktree
):
    (Path(worktree.path) / "untracked").write_text("2\n")
    zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    worktree.state = Worktree.State.MISSING
    worktree.pinned = True
    worktree.save(force_insert=True)
    restored = restoring.restore(worktree.pk, actor="somebody")
    assert (restored.state, restored.pinned) == (Worktree.State.READY, True)
    assert (Path(worktree.path) / "untracked").exists()


def test_without_an_archive_or_after_its_time_it_says_so(
    worktree: Worktree, repository: Repository, gone: WorktreeArchive
):
    with pytest.raises(UnknownArchive, match="worktree archives"):
        restoring.restore(999_999, actor="somebody")
    WorktreeArchive.objects.update(state="expired", expires_at=Now())
    with pytest.raises(ArchiveExpired, match="ACW_ARCHIVE_RETENTION"):
        restore(gone)


STEPS = (
    (rebuilding, "hold_objects"),
    (branches, "place"),
    (unpacking, "unpack"),
    (rebuilding, "read_files"),
    (rebuilding, "put_in_place"),
    (rebuilding, "_register"),
    (os, "rename"),
)


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_fails_leaves_nothing_and_the_next_try_restores_it(
    repository: Repository,
    gone: WorktreeArchive,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
):
    for module, step in STEPS:
        if (step, when) in {("put_in_place", "after"), ("rename", "after")}:
            continue  # it is whole then
        real = getattr(module, step)

        def failing(*args: Any, real: Any = real, **options: Any) -> None:
            if when == "after":
                real(*args, **options)
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as broken:
            broken.setattr(module, step, failing)
            with pytest.raises(OSError, match="No space"):
                restore(gone)
        if step != "rename":  # with which it is cleared away as well
            assert left_over(repository) == [], step
            assert not Worktree.objects.exists(), step
    assert git("status", "--porcelain", cwd=Path(restore(gone).path)) == "?? untracked"


def test_what_came_to_its_place_is_finished_by_the_next_call(
    gone: WorktreeArchive, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as broken:
        broken.setattr(restoring, "_restored", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            restore(gone)
    assert Worktree.objects.get().state == Worktree.State.RESTORING
    monkeypatch.setattr(restoring, "_rebuild", lambda *_, **__: 1 / 0)
    assert restore(gone).state == Worktree.State.READY


def test_what_was_changed_in_its_place_meanwhile_is_put_aside_and_it_is_restored_anew(
    repository: Repository, gone: WorktreeArchive, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as broken:
        broken.setattr(restoring, "_restored", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            restore(gone)
    (Path(gone.path) / "untracked").write_text("changed\n")
    assert restore(gone).state == Worktree.State.READY
    assert (Path(gone.path) / "untracked").read_text() == "2\n"
    aside = [*paths.stray_directory(repository.directory).glob("*/untracked")]
    assert [file.read_text() for file in aside] == ["changed\n"]


def test_tampered_configuration_keeps_it_where_it_is(
    repository: Repository, gone: WorktreeArchive
):
    git("config", "core.fsmonitor", "/bin/evil", cwd=repository.path)
    with pytest.raises(ConfigTampered):
        restore(gone)
    assert not Worktree.objects.exists()
