from __future__ import annotations

import datetime as dt
import logging
import shutil
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.conftest import Told
from tests.workspaces.factories import AdminFactory, UserFactory, WorkspaceFactory
from tests.workspaces.remote import Remote, git
from workspaces import clones, fetch, locking, paths
from workspaces.exceptions import GitStopped, RepositoryBusy, WrongHost
from workspaces.fetch import fetch_workspace
from workspaces.models import Workspace, Worktree

pytestmark = pytest.mark.django_db


def test_a_fetch_brings_what_was_pushed_and_is_recorded(
    workspace: Workspace, remote: Remote, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    before = workspace.last_fetched_at
    new = remote.push("new")
    assert fetch_workspace(workspace) == fetch.Fetched(changed=1)
    assert git("rev-parse", "origin/main", cwd=Path(workspace.path)) == new
    workspace.refresh_from_db()
    assert before is not None
    assert workspace.last_fetched_at is not None
    assert workspace.last_fetched_at > before
    assert caplog.records[-1].message == "workspace.fetched"
    assert vars(caplog.records[-1])["changed_branches"] == 1


def test_fetching_is_no_use_of_the_worktrees(workspace: Workspace, worktree: Worktree):
    fetch_workspace(workspace)
    assert Worktree.objects.get().last_used_at == worktree.last_used_at


def test_a_failure_is_recorded_returned_and_told_to_the_owner_once(
    workspace: Workspace, remote: Remote, told: Told
):
    AdminFactory()
    owner = UserFactory()
    Workspace.objects.update(owner=owner)
    remote.vanish()
    for _ in range(3):
        fetched = fetch_workspace(workspace)
        assert "does not appear to be a git repository" in fetched.error
    workspace.refresh_from_db()
    assert workspace.failing_since is not None
    assert workspace.last_fetch_error == fetched.error
    (notification,) = told("workspace.sync_failed")
    assert notification.user == owner
    assert notification.title == "Workspace demo cannot be fetched"
    assert fetched.error in notification.body
    assert notification.data["workspace_id"] == workspace.pk


def test_without_an_owner_every_admin_is_told(
    workspace: Workspace, remote: Remote, told: Told
):
    admins = {AdminFactory(), AdminFactory()}
    UserFactory()
    remote.vanish()
    fetch_workspace(workspace)
    assert {n.user for n in told("workspace.sync_failed")} == admins


def test_recovery_is_told_once_and_a_new_failure_again(
    workspace: Workspace, remote: Remote, told: Told, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    AdminFactory()
    for _ in range(2):
        remote.vanish()
        fetch_workspace(workspace)
        remote.come_back()
        for _ in range(2):
            assert fetch_workspace(workspace).error == ""
    workspace.refresh_from_db()
    assert workspace.failing_since is None
    assert workspace.last_fetch_error == ""
    assert len(told("workspace.sync_failed")) == 2
    assert len(told("workspace.sync_recovered")) == 2
    assert caplog.messages.count("workspace.recovered") == 2


def test_how_long_it_fails_is_counted_from_the_first(
    workspace: Workspace, remote: Remote
):
    remote.vanish()
    fetch_workspace(workspace)
    workspace.refresh_from_db()
    first = workspace.failing_since
    fetch_workspace(workspace)
    workspace.refresh_from_db()
    assert workspace.failing_since == first


def test_the_row_and_the_notification_are_written_together(
    workspace: Workspace, remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    def fail(_: object) -> None:
        raise RuntimeError

    remote.vanish()
    monkeypatch.setattr(fetch, "dispatch", fail)
    with pytest.raises(RuntimeError):
        fetch_workspace(workspace)
    workspace.refresh_from_db()
    assert workspace.failing_since is None


def test_a_clone_that_is_gone_is_a_failure(workspace: Workspace):
    shutil.rmtree(Path(workspace.path).parent)
    assert "there is no clone at" in fetch_workspace(workspace).error


def test_a_path_that_is_not_its_own_is_a_failure(workspace: Workspace, tmp_path: Path):
    workspace.path = str(tmp_path)
    assert "ACW_DATA_DIR" in fetch_workspace(workspace).error


def test_a_protocol_that_is_no_longer_allowed_is_a_failure(
    workspace: Workspace, settings: Settings
):
    settings.ACW_GIT_PROTOCOLS = ["https"]
    assert "'file' is not allowed" in fetch_workspace(workspace).error


def test_a_timeout_is_a_failure(workspace: Workspace, settings: Settings):
    failed = fetch_workspace(workspace, timeout=dt.timedelta(0))
    assert "took longer than 0:00:00" in failed.error


def test_another_fetch_at_the_same_time_is_no_failure(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fetch, "LOCK_WAIT", dt.timedelta(0))
    lock = paths.fetch_lock_path(Path(workspace.path).parent)
    with (
        locking.locked(lock, wait=dt.timedelta(0)),
        pytest.raises(RepositoryBusy),
    ):
        fetch_workspace(workspace)
    workspace.refresh_from_db()
    assert workspace.failing_since is None


def test_being_stopped_is_no_failure(workspace: Workspace):
    with pytest.raises(GitStopped):
        fetch_workspace(workspace, stop=lambda: True)
    workspace.refresh_from_db()
    assert workspace.failing_since is None


def test_another_hosts_workspace_is_not_touched():
    workspace = WorkspaceFactory(host="elsewhere")
    with pytest.raises(WrongHost):
        fetch_workspace(workspace)
    workspace.refresh_from_db()
    assert workspace.failing_since is None


def test_one_that_is_removed_meanwhile_is_forgotten(workspace: Workspace, told: Told):
    AdminFactory()
    Workspace.objects.all().delete()
    assert fetch_workspace(workspace).error == ""
    shutil.rmtree(workspace.path)
    fetch_workspace(workspace)
    assert told("workspace.sync_failed") == []


def test_a_renamed_default_branch_is_followed(workspace: Workspace, remote: Remote):
    git("branch", "--move", "main", "trunk", cwd=remote.path)
    fetch_workspace(workspace)
    workspace.refresh_from_db()
    assert workspace.default_branch == "trunk"


def test_an_empty_remote_gets_its_default_branch_when_it_has_one(
    tmp_path: Path, remote: Remote
):
    git("init", "--quiet", "--bare", "--initial-branch=main", str(tmp_path / "empty"))
    workspace = clones.add_workspace("demo", str(tmp_path / "empty"))
    assert workspace.default_branch == ""
    git("push", "--quiet", str(tmp_path / "empty"), "main", cwd=remote.work)
    fetch_workspace(workspace)
    workspace.refresh_from_db()
    assert workspace.default_branch == "main"


def test_no_credential_of_the_remote_is_recorded_or_told(
    workspace: Workspace, remote: Remote, told: Told
):
    AdminFactory()
    Workspace.objects.update(url=f"file://user:SECRET@{remote.path}")
    workspace.refresh_from_db()
    fetch_workspace(workspace)
    workspace.refresh_from_db()
    assert "SECRET" not in workspace.last_fetch_error
    (notification,) = told("workspace.sync_failed")
    assert "SECRET" not in f"{notification.body}{notification.data}"
