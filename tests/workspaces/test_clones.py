from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from jobs.models import Job
from jobs.testing import run_due_jobs
from notify.models import AuditEntry
from tests.workspaces.factories import UserFactory, WorkspaceFactory
from tests.workspaces.remote import Remote, commit, git
from workspaces import clones, holds, paths
from workspaces.exceptions import (
    GitFailed,
    GitStopped,
    InvalidName,
    NameTaken,
    NotCloned,
    OutsideDataDirectory,
    RefusedUrl,
    RepositoryBusy,
    UnknownWorkspace,
    WorkspaceInUse,
    WrongHost,
)
from workspaces.models import Conversation, Workspace, Worktree, WorktreeArchive
from workspaces.plumbing import locking
from workspaces.upkeep.places import GONE

pytestmark = pytest.mark.django_db


def on_disk() -> list[str]:
    return sorted(os.listdir(paths.workspaces_directory()))


def test_a_workspace_is_a_row_and_a_clone(remote: Remote):
    owner = UserFactory()
    workspace = clones.add_workspace("demo", remote.url, owner=owner)
    assert (workspace.name, workspace.url, workspace.host) == (
        "demo",
        remote.url,
        "test-host",
    )
    assert workspace.owner == owner
    assert workspace.default_branch == "main"
    assert workspace.last_fetched_at is not None
    assert git("rev-parse", "origin/main", cwd=Path(workspace.path)) == git(
        "rev-parse", "main", cwd=remote.path
    )
    assert on_disk() == ["demo"]
    assert not paths.disposable_mark(paths.workspace_directory("demo")).exists()


def test_a_plain_path_is_a_remote_too(remote: Remote):
    assert clones.add_workspace("demo", str(remote.path)).default_branch == "main"


def test_an_empty_remote_is_accepted(tmp_path: Path):
    git("init", "--quiet", "--bare", str(tmp_path / "empty.git"))
    workspace = clones.add_workspace("demo", str(tmp_path / "empty.git"))
    assert workspace.default_branch == ""


@pytest.mark.parametrize(
    ("name", "url", "error"),
    [
        ("../x", "{url}", InvalidName),
        ("demo", "ext::sh -c x", RefusedUrl),
        ("demo", "--upload-pack=x", RefusedUrl),
        ("demo", "file:///nowhere/at/all", GitFailed),
    ],
)
def test_what_is_refused_leaves_nothing_behind(
    remote: Remote, name: str, url: str, error: type[Exception]
):
    paths.workspaces_directory().mkdir(parents=True)
    with pytest.raises(error):
        clones.add_workspace(name, url.format(url=remote.url))
    assert on_disk() == []
    assert not Workspace.objects.exists()


def test_one_that_is_stopped_leaves_nothing_behind(remote: Remote):
    with pytest.raises(GitStopped):
        clones.add_workspace("demo", remote.url, stop=lambda: True)
    assert on_disk() == []


def test_a_name_is_given_once(workspace: Workspace, remote: Remote):
    with pytest.raises(NameTaken, match="a workspace 'demo' already"):
        clones.add_workspace("demo", remote.url)
    assert on_disk() == ["demo"]


def test_a_name_that_is_taken_meanwhile_is_refused(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(clones, "check_new", lambda *_: WorkspaceFactory(name="demo"))
    with pytest.raises(NameTaken, match="added meanwhile"):
        clones.add_workspace("demo", remote.url)


def test_a_workspace_can_be_asked_for_and_is_made_by_a_worker(remote: Remote):
    owner = UserFactory()
    workspace = clones.request_workspace("demo", remote.url, owner=owner, actor="ada")
    assert (workspace.state, workspace.owner) == ("cloning", owner)
    assert not Path(workspace.path).exists()
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == ("ada", "workspace.add")
    with pytest.raises(NotCloned, match="is being cloned"):
        holds.acquire(workspace, holder="agent")
    (job,) = run_due_jobs(queues=["host:test-host"])
    assert job.type == "workspace.clone"
    workspace.refresh_from_db()
    clones.check_ready(workspace)
    assert holds.acquire(workspace, holder="agent").held_by == "agent"


@pytest.mark.parametrize(
    ("name", "url", "error"),
    [
        ("../x", "{url}", InvalidName),
        ("demo", "--upload-pack=x", RefusedUrl),
        ("taken", "{url}", NameTaken),
        ("left", "{url}", NameTaken),
    ],
)
def test_what_is_asked_for_is_refused_at_once(
    remote: Remote, name: str, url: str, error: type[Exception]
):
    WorkspaceFactory(name="taken")
    paths.workspace_directory("left").mkdir(parents=True)
    with pytest.raises(error):
        clones.request_workspace(name, url.format(url=remote.url), actor="ada")
    assert not Job.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_directory_that_no_workspace_has_is_never_overwritten(remote: Remote):
    precious = paths.workspace_directory("demo") / "precious"
    precious.mkdir(parents=True)
    with pytest.raises(NameTaken, match="no workspace has it"):
        clones.add_workspace("demo", remote.url)
    assert precious.exists()


def test_a_mark_left_on_a_living_workspace_is_harmless(
    workspace: Workspace, remote: Remote
):
    paths.disposable_mark(Path(workspace.path).parent).touch()
    clones.add_workspace("other", remote.url)
    assert on_disk() == ["demo", "other"]


def test_what_was_interrupted_before_is_swept(remote: Remote):
    (paths.workspaces_directory() / ".removing-0123" / "x").mkdir(parents=True)
    clones.add_workspace("demo", remote.url)
    assert on_disk() == ["demo"]


def test_find_names_what_there_is(workspace: Workspace):
    assert clones.find("demo") == workspace
    with pytest.raises(UnknownWorkspace, match="no workspace 'nothing'"):
        clones.find("nothing")
    for name in ("\udcff", "a\x00b", ""):
        with pytest.raises(UnknownWorkspace):
            clones.find(name)


def test_removing_takes_rows_and_directory(workspace: Workspace, worktree: Worktree):
    conversation = Conversation.objects.create(title="x", worktree=worktree)
    clones.remove_workspace(workspace)
    assert on_disk() == []
    assert not Workspace.objects.exists()
    assert not Worktree.objects.exists()
    conversation.refresh_from_db()
    assert conversation.worktree is None


def test_the_name_is_free_again(workspace: Workspace, remote: Remote):
    clones.remove_workspace(workspace)
    again = clones.add_workspace("demo", remote.url)
    assert (again.name, again.state) == ("demo", Workspace.State.READY)


def test_a_held_worktree_keeps_its_workspace(workspace: Workspace):
    holds.acquire(workspace, holder="agent")
    for discard_work in (False, True):
        with pytest.raises(WorkspaceInUse, match="held by 'agent'"):
            clones.remove_workspace(workspace, discard_work=discard_work)
    assert Path(workspace.path).exists()
    assert not paths.disposable_mark(Path(workspace.path).parent).exists()


def test_work_that_is_nowhere_else_keeps_it(workspace: Workspace, worktree: Worktree):
    (Path(worktree.path) / "new").touch()
    with pytest.raises(WorkspaceInUse, match=r"acw/work: 1 untracked file \(new\)"):
        clones.remove_workspace(workspace)
    assert (Path(worktree.path) / "new").exists()
    clones.remove_workspace(workspace, discard_work=True)
    assert on_disk() == []


def test_a_branch_that_is_not_pushed_keeps_it(workspace: Workspace, worktree: Worktree):
    path = Path(worktree.path)
    commit(path)
    git("checkout", "--quiet", "--detach", "origin/main", cwd=path)
    with pytest.raises(WorkspaceInUse, match="not pushed on refs/heads/acw/work"):
        clones.remove_workspace(workspace)


def test_a_removal_waits_for_who_works_on_it(workspace: Workspace, settings: Settings):
    settings.ACW_GIT_TIMEOUT = dt.timedelta(0)
    directory = Path(workspace.path).parent
    for lock in (paths.lock_path(directory), paths.fetch_lock_path(directory)):
        with (
            locking.locked(lock, wait=dt.timedelta(0)),
            pytest.raises(RepositoryBusy),
        ):
            clones.remove_workspace(workspace)
    assert Workspace.objects.exists()


def test_one_of_another_host_is_refused(workspace: Workspace, settings: Settings):
    settings.ACW_HOST = "elsewhere"
    with pytest.raises(WrongHost, match="lies on host 'test-host'"):
        clones.remove_workspace(workspace)


def test_one_whose_clone_is_gone_can_be_removed(workspace: Workspace):
    shutil.rmtree(Path(workspace.path).parent)
    clones.remove_workspace(workspace)
    assert not Workspace.objects.exists()


def test_one_whose_path_is_not_its_own_is_never_touched(
    workspace: Workspace, tmp_path: Path
):
    Workspace.objects.update(path=str(tmp_path))
    with pytest.raises(OutsideDataDirectory):
        clones.remove_workspace(clones.find("demo"), discard_work=True)
    assert tmp_path.exists()
    assert Workspace.objects.exists()


def test_a_removal_that_fails_leaves_everything(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    def fail(self: object) -> None:
        raise ImproperlyConfigured

    monkeypatch.setattr(Workspace, "delete", fail)
    with pytest.raises(ImproperlyConfigured):
        clones.remove_workspace(workspace)
    left = set(os.listdir(Path(workspace.path).parent))
    assert left == {"control.git", "fetch.lock", "lock", "repository.git"}


def test_one_that_is_not_cloned_can_be_removed(remote: Remote):
    paths.workspaces_directory().mkdir(parents=True)
    for state in (Workspace.State.CLONING, Workspace.State.FAILED):
        workspace = clones.request_workspace("demo", remote.url, actor="ada")
        Workspace.objects.update(state=state)
        clones.remove_workspace(workspace)
        assert not Workspace.objects.exists()
    run_due_jobs(queues=["host:test-host"])
    assert on_disk() == []


def test_one_that_became_ready_meanwhile_is_removed_with_its_clone(remote: Remote):
    workspace = clones.request_workspace("demo", remote.url, actor="ada")
    run_due_jobs(queues=["host:test-host"])
    assert workspace.state == "cloning"
    clones.remove_workspace(workspace)
    assert on_disk() == []
    assert not Workspace.objects.exists()


def test_an_archive_that_can_be_restored_keeps_it(workspace: Workspace):
    archive = WorktreeArchive.objects.create(
        workspace=workspace,
        worktree_id=7,
        path="x",
        branch="gone",
        state=WorktreeArchive.State.VERIFIED,
        reason=WorktreeArchive.Reason.PRUNED,
        actor="x",
    )
    bundle = paths.bundle_path("demo", archive.pk)
    bundle.parent.mkdir(parents=True)
    bundle.touch()
    with pytest.raises(WorkspaceInUse, match=f"archive {archive.pk} of worktree gone"):
        clones.remove_workspace(workspace)
    assert bundle.exists()
    clones.remove_workspace(workspace, discard_work=True)
    assert not bundle.parent.exists()
    assert not WorktreeArchive.objects.exists()
    assert on_disk() == []


def test_one_whose_clone_was_gone_when_it_was_looked_for_is_no_less_protected(
    workspace: Workspace, worktree: Worktree
):
    (Path(worktree.path) / "new").touch()
    Workspace.objects.update(state=Workspace.State.FAILED, clone_progress=GONE)
    with pytest.raises(WorkspaceInUse, match="untracked file"):
        clones.remove_workspace(clones.find("demo"))
    assert Worktree.objects.exists()
    clones.remove_workspace(clones.find("demo"), discard_work=True)
    assert on_disk() == []
