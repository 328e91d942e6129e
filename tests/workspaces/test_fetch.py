from __future__ import annotations

import datetime as dt
import errno
import logging
import os
import shutil
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.conftest import Told
from tests.workspaces.factories import AdminFactory, UserFactory, WorkspaceFactory
from tests.workspaces.remote import Counted, Remote, git
from workspaces import clones, fetch, holds, paths
from workspaces.exceptions import (
    GitStopped,
    NotCloned,
    RemoteBusy,
    RepositoryBusy,
    WrongHost,
)
from workspaces.failures import Failure
from workspaces.fetch import fetch_together, fetch_workspace
from workspaces.fetching import slots
from workspaces.fetching.fetch_rows import Candidate
from workspaces.models import Workspace, Worktree
from workspaces.plumbing import locking
from workspaces.repository import Repository

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


def test_where_the_disk_fails_at_a_name_that_is_no_text_it_is_recorded(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> int:
        raise OSError(errno.EIO, "Input/output error", "/clone/\udcff")

    monkeypatch.setattr(Repository, "fetch", fail)
    assert fetch_workspace(workspace).failure == "corrupt"
    workspace.refresh_from_db()
    assert workspace.last_fetch_error.startswith("Input/output error: /clone/")


def test_another_remote_is_agents_origin_too(workspace: Workspace, remote: Remote):
    Workspace.objects.update(url=str(remote.path))
    workspace.refresh_from_db()
    fetch_workspace(workspace)
    origin = git("remote", "get-url", "origin", cwd=Path(workspace.path))
    assert origin == str(remote.path)


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


def test_one_that_is_not_cloned_is_not_fetched():
    for state in (Workspace.State.CLONING, Workspace.State.FAILED):
        with pytest.raises(NotCloned):
            fetch_workspace(WorkspaceFactory(state=state))


def test_too_many_from_one_host_is_no_failure(workspace: Workspace, settings: Settings):
    settings.ACW_GIT_HOST_LIMIT = 1
    workspace.url = "https://git.example/x.git"
    with slots.taken(workspace.url), pytest.raises(RemoteBusy):
        fetch_workspace(workspace)
    workspace.refresh_from_db()
    assert workspace.failing_since is None


def test_a_full_disk_is_a_failure_of_its_kind(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "/data/x")

    monkeypatch.setattr(Repository, "fetch", fail)
    assert fetch_workspace(workspace) == fetch.Fetched(
        error="No space left on device: /data/x", failure=Failure.DISK_FULL
    )


def test_what_was_planted_is_told_by_the_seal_and_nothing_is_fetched(
    workspace: Workspace, repository: Repository, remote: Remote, told: Told
):
    AdminFactory()
    before = git("rev-parse", "origin/main", cwd=repository.path)
    git("config", "core.sshCommand", "touch FIRED", cwd=repository.path)
    remote.push("new")
    assert fetch_workspace(workspace).failure == Failure.CONFIG_TAMPERED
    assert git("rev-parse", "origin/main", cwd=repository.path) == before
    assert told("workspace.sync_failed") == []
    assert len(told("workspace.config_tampered")) == 1
    git("config", "--unset", "core.sshCommand", cwd=repository.path)
    assert fetch_workspace(clones.find("demo")).changed == 1
    assert told("workspace.sync_recovered") == []


def test_a_pipe_in_the_place_of_an_object_is_waited_for_once_and_then_named(
    workspace: Workspace, repository: Repository, remote: Remote
):
    new = remote.push("new")
    pipe = repository.path / "objects" / new[:2] / new[2:]
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    waited = fetch_workspace(workspace, timeout=dt.timedelta(seconds=0.3))
    assert waited.failure == "timeout"
    for _ in range(2):
        workspace.refresh_from_db()
        named = fetch_workspace(workspace)
        assert named.failure == "config_tampered"
        assert f"objects/{new[:2]}/{new[2:]} in" in named.error
    pipe.unlink()
    workspace.refresh_from_db()
    assert fetch_workspace(workspace).error == ""


def test_a_worktree_shows_that_its_branch_is_gone_from_the_remote_and_is_back(
    workspace: Workspace, remote: Remote
):
    def gone() -> list[bool]:
        rows = Worktree.objects.order_by("pk")
        return [row.upstream_gone_at is not None for row in rows]

    remote.push("file", branch="topic")
    fetch_workspace(workspace)
    for branch in ("topic", "of-no-remote"):
        worktree = holds.acquire(workspace, branch=branch, holder="agent")
        holds.release(worktree.pk)
    assert gone() == [False, False]
    remote.delete_branch("topic")
    fetch_workspace(workspace)
    assert gone() == [True, False]
    assert Path(Worktree.objects.first().path).is_dir()  # type: ignore[union-attr]
    fetch_workspace(workspace)
    assert gone() == [True, False]
    remote.push("again", branch="topic")
    fetch_workspace(workspace)
    assert gone() == [False, False]


def test_a_stale_lock_on_the_configuration_goes_and_hides_nothing_meanwhile(
    workspace: Workspace, repository: Repository, remote: Remote
):
    remote.push("file", branch="topic")
    fetch_workspace(workspace)
    worktree = holds.acquire(workspace, branch="topic", holder="agent")
    holds.release(worktree.pk)
    remote.delete_branch("topic")
    Workspace.objects.update(url=str(remote.path))
    lock = repository.path / "config.lock"
    lock.touch()
    os.utime(lock, (1, 1))
    workspace.refresh_from_db()
    assert fetch_workspace(workspace).failure == "lock"
    worktree.refresh_from_db()
    assert worktree.upstream_gone_at is not None
    workspace.refresh_from_db()
    assert fetch_workspace(workspace).error == ""
    assert not lock.exists()
    assert git("remote", "get-url", "origin", cwd=repository.path) == str(remote.path)


@pytest.fixture
def siblings(remote: Remote, settings: Settings, counted: Counted) -> list[Candidate]:
    """Four workspaces of one remote that is reached by ssh."""
    settings.ACW_GIT_PROTOCOLS = ["ssh"]
    url = f"git@git.example:{remote.path}"
    made = [clones.add_workspace(name, url) for name in "abcd"]
    counted.forget()
    return [Candidate(workspace=workspace) for workspace in made]


def test_a_remote_that_names_no_default_branch_is_asked_for_it_once(
    siblings: list[Candidate], remote: Remote, counted: Counted
):
    for branch in ("one", "two"):
        git("branch", branch, "main", cwd=remote.path)
    git("branch", "-D", "main", cwd=remote.path)
    Workspace.objects.update(default_branch="")
    for one in siblings:
        one.workspace.refresh_from_db()
    assert [one.error for one in fetch_together(siblings)] == [""] * 4
    assert counted.contacts == 2
    assert {row.default_branch for row in Workspace.objects.all()} == {""}


def heads(siblings: list[Candidate]) -> list[str]:
    return [
        git("rev-parse", "origin/main", cwd=Path(one.workspace.path))
        for one in siblings
    ]


def test_many_workspaces_of_one_remote_cost_one_contact(
    siblings: list[Candidate], remote: Remote, counted: Counted
):
    new = remote.push("new")
    assert fetch_together(siblings) == [fetch.Fetched(changed=1)] * 4
    assert counted.contacts == 1
    assert heads(siblings) == [new] * 4
    rows = Workspace.objects.all()
    assert len({row.next_fetch_at - row.last_fetched_at for row in rows}) == 1  # type: ignore[operator]
    assert all(row.last_fetched_at > row.created_at for row in rows)  # type: ignore[operator]
    assert fetch_together(siblings) == [fetch.Fetched()] * 4
    assert counted.contacts == 2


def test_a_remote_that_fails_has_failed_all_with_one_contact(
    siblings: list[Candidate], remote: Remote, told: Told, counted: Counted
):
    AdminFactory()
    remote.vanish()
    failed = fetch_together(siblings)
    assert [one.failure for one in failed] == [Failure.NOT_FOUND] * 4
    assert counted.contacts == 1
    assert Workspace.objects.failing().count() == 4
    assert len(told("workspace.sync_failed")) == 4


def test_a_clone_that_fails_is_alone_with_that(
    siblings: list[Candidate], remote: Remote, counted: Counted
):
    for number in (0, 2):
        shutil.rmtree(siblings[number].workspace.path)
    new = remote.push("new")
    fetched = fetch_together(siblings)
    refused = [one.failure for one in fetched]
    assert refused == [Failure.REFUSED, None, Failure.REFUSED, None]
    assert counted.contacts == 1
    assert heads([siblings[1], siblings[3]]) == [new] * 2
    failing = Workspace.objects.failing().values_list("name", flat=True)
    assert list(failing) == ["a", "c"]


def test_what_git_says_of_a_clone_alone_is_not_the_remotes_failure(
    siblings: list[Candidate], remote: Remote, counted: Counted
):
    # Left by an agent's git that was killed; nothing says that it isn't the network.
    lock = Path(siblings[0].workspace.path, "refs/remotes/origin/topic/x.lock")
    lock.parent.mkdir(parents=True)
    lock.touch()
    remote.push("new", branch="topic")
    fetched = fetch_together(siblings)
    assert [one.failure for one in fetched] == [Failure.NETWORK, None, None, None]
    assert counted.contacts == 2


def test_one_that_is_being_fetched_keeps_nobody_waiting(
    siblings: list[Candidate], remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fetch, "LOCK_WAIT", dt.timedelta(0))
    lock = paths.fetch_lock_path(Path(siblings[0].workspace.path).parent)
    new = remote.push("new")
    with (
        locking.locked(lock, wait=dt.timedelta(0)),
        pytest.raises(RepositoryBusy),
    ):
        fetch_together(siblings)
    assert heads(siblings[1:]) == [new] * 3
    assert heads(siblings)[0] != new


def test_a_renamed_default_branch_is_followed_by_all_with_one_question(
    siblings: list[Candidate], remote: Remote, told: Told, counted: Counted
):
    AdminFactory()
    git("branch", "--move", "main", "trunk", cwd=remote.path)
    for _ in range(2):
        fetch_together(siblings)
        siblings = [
            Candidate(workspace=clones.find(one.workspace.name)) for one in siblings
        ]
    assert {one.workspace.default_branch for one in siblings} == {"trunk"}
    # Two fetches, and what the new one is called.
    assert counted.contacts == 3
    notifications = told("workspace.default_branch_changed")
    assert len(notifications) == 4
    assert notifications[0].data["before"] == "main"
    assert notifications[0].data["default_branch"] == "trunk"
    for one in siblings:
        path = Path(one.workspace.path)
        assert git("symbolic-ref", "refs/remotes/origin/HEAD", cwd=path).endswith(
            "origin/trunk"
        )
    assert holds.acquire(siblings[0].workspace, holder="agent").held_by == "agent"
