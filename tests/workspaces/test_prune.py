from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from pytest_django import Settings

from notify.models import AuditEntry
from tests.workspaces.conftest import Told, make_idle
from tests.workspaces.factories import AdminFactory, UserFactory
from tests.workspaces.remote import commit, git
from workspaces import holds, prune, worktrees
from workspaces.exceptions import (
    WrongHost,
)
from workspaces.models import Workspace, Worktree
from workspaces.prune import Outcome, prune_worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def test_directory_registration_and_row_go_and_the_branch_stays(
    worktree: Worktree,
    path: Path,
    trash: Path,
    repository: Repository,
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    assert not path.exists()
    assert not trash.exists()
    assert worktrees.registration(repository, path) is None
    assert not Worktree.objects.exists()
    assert repository.local_branch("acw/work") is not None
    assert "worktree.pruned" in caplog.messages
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target) == (
        "worktree.pruned",
        f"worktree:{worktree.pk}",
    )


def test_its_branch_can_be_acquired_again(
    workspace: Workspace, worktree: Worktree, path: Path
):
    prune_worktree(worktree.pk)
    again = holds.acquire(workspace, branch="acw/work", holder="agent")
    assert Path(again.path, "README").exists()


@pytest.mark.parametrize("days", [0, 28, 29.99])
def test_one_that_is_not_due_is_left_alone(worktree: Worktree, days: float):
    make_idle(worktree, days=days)
    assert prune_worktree(worktree.pk) is Outcome.NOT_DUE
    assert Path(worktree.path).exists()
    assert Worktree.objects.get().state == Worktree.State.READY


def test_a_held_one_is_never_pruned(workspace: Workspace, worktree: Worktree):
    holds.acquire(workspace, branch="acw/work", holder="agent")
    make_idle(worktree, days=4000)
    assert prune_worktree(worktree.pk) is Outcome.NOT_DUE
    assert Path(worktree.path).exists()


def test_one_that_is_gone_already_is_no_error():
    assert prune_worktree(12345) is Outcome.NOT_DUE


def test_work_keeps_it_and_its_owner_is_told_once(
    worktree: Worktree, path: Path, told: Told, caplog: pytest.LogCaptureFixture
):
    owner = UserFactory()
    Workspace.objects.update(owner=owner)
    (path / "new").touch()
    for _ in range(3):
        assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert (path / "new").exists()
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.READY
    assert worktree.prune_blocked_at is not None
    assert worktree.prune_blocked_reason == "1 untracked file (new)"
    (notification,) = told("worktree.prune_blocked")
    assert notification.user == owner
    assert "1 untracked file (new)" in notification.body
    assert caplog.messages.count("worktree.prune_blocked") == 1


def test_other_work_is_told_again(worktree: Worktree, path: Path, told: Told):
    AdminFactory()
    (path / "new").touch()
    prune_worktree(worktree.pk)
    (path / "newer").touch()
    prune_worktree(worktree.pk)
    assert len(told("worktree.prune_blocked")) == 2


def test_the_report_and_the_notification_are_written_together(
    worktree: Worktree, path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(_: object) -> None:
        raise RuntimeError

    (path / "new").touch()
    monkeypatch.setattr(prune, "dispatch", fail)
    with pytest.raises(RuntimeError):
        prune_worktree(worktree.pk)
    worktree.refresh_from_db()
    assert worktree.prune_blocked_at is None


def test_it_goes_once_its_work_is_safe(worktree: Worktree, path: Path):
    (path / "new").touch()
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    (path / "new").unlink()
    assert prune_worktree(worktree.pk) is Outcome.PRUNED


def test_commits_that_are_not_pushed_keep_it(worktree: Worktree, path: Path):
    mine = commit(path)
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert git("rev-parse", "HEAD", cwd=path) == mine


def test_a_directory_that_is_gone_is_forgotten(
    worktree: Worktree, path: Path, repository: Repository
):
    shutil.rmtree(path)
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    assert worktrees.registration(repository, path) is None
    assert not Worktree.objects.exists()


def test_a_directory_that_git_does_not_know_is_kept_and_told(
    worktree: Worktree, path: Path, repository: Repository, told: Told
):
    AdminFactory()
    admin = worktrees.registration(repository, path)
    assert admin
    shutil.rmtree(admin)
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert (path / "README").exists()
    assert "cannot be checked" in told("worktree.prune_blocked")[0].body


def test_a_root_swapped_for_a_link_empties_nothing(
    worktree: Worktree, path: Path, tmp_path: Path, told: Told
):
    AdminFactory()
    victim = tmp_path / "victim"
    shutil.copytree(path, victim)  # with the .git file, which is what would fool git
    shutil.rmtree(path)
    path.symlink_to(victim)
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert (victim / "README").exists()
    assert "symbolic link" in told("worktree.prune_blocked")[0].body


@pytest.mark.parametrize("outside", ["/", "{repository}", "{other}/x"])
def test_a_path_that_is_not_its_own_is_kept_and_told(
    worktree: Worktree, path: Path, repository: Repository, tmp_path: Path, outside: str
):
    named = outside.format(repository=repository.path, other=tmp_path)
    Worktree.objects.update(path=named)
    assert prune_worktree(worktree.pk) is Outcome.BLOCKED
    assert repository.path.exists()
    assert "not directly below" in Worktree.objects.get().prune_blocked_reason


def test_what_links_within_lead_to_is_left(
    worktree: Worktree, path: Path, repository: Repository, tmp_path: Path
):
    (repository.path / "info").mkdir()
    (repository.path / "info" / "exclude").write_text("node_modules\n")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "kept").touch()
    (path / "node_modules").symlink_to(tmp_path / "shared")
    assert prune_worktree(worktree.pk) is Outcome.PRUNED
    assert (tmp_path / "shared" / "kept").exists()


def test_another_hosts_worktree_is_not_touched(
    worktree: Worktree, path: Path, settings: Settings
):
    settings.ACW_HOST = "elsewhere"
    with pytest.raises(WrongHost):
        prune_worktree(worktree.pk)
    assert path.exists()
