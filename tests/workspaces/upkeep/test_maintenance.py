from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from tests.workspaces.conftest import Told
from tests.workspaces.remote import commit, git
from workspaces import paths
from workspaces.exceptions import GitStopped, RepositoryBusy, WrongHost
from workspaces.models import Workspace, Worktree
from workspaces.plumbing import stale_locks
from workspaces.repository import Repository
from workspaces.upkeep import maintenance

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("admin")]


def loose(repository: Repository) -> int:
    counted = git("count-objects", "-v", cwd=repository.path)
    return int(counted.partition("count: ")[2].partition("\n")[0])


def test_all_is_packed_and_nothing_that_was_there_is_gone(
    workspace: Workspace, worktree: Worktree, path: Path, repository: Repository
):
    amended = commit(path, "first")
    git("commit", "--quiet", "--amend", "--message", "again", cwd=path)
    git("checkout", "--quiet", "--detach", cwd=path)
    detached = commit(path, "second")
    git("checkout", "--quiet", worktree.branch, cwd=path)
    archived = commit(path, "third")
    git("update-ref", "refs/acw/archive/1", archived, cwd=path)
    git("reset", "--quiet", "--hard", "HEAD^", cwd=path)
    (path / "staged").write_text("only staged\n")
    git("add", "staged", cwd=path)
    staged = git("rev-parse", ":staged", cwd=path)
    (path / "blob").write_text("nothing leads to this\n")
    unreachable = git("hash-object", "-w", "blob", cwd=path)
    before = git("status", "--porcelain=v2", cwd=path)

    for _ in range(3):  # the first makes the packs that later ones repack
        assert maintenance.maintain(workspace) == ""

    for kept in (amended, detached, archived, staged, unreachable):
        git("cat-file", "-e", kept, cwd=path)
    assert git("status", "--porcelain=v2", cwd=path) == before
    assert loose(repository) == 0
    assert (repository.path / "packed-refs").exists()
    assert "archive/1" in git("for-each-ref", "refs/acw", cwd=path)
    workspace.refresh_from_db()
    assert workspace.maintained_at is not None
    assert workspace.checked_at is not None
    assert workspace.clone_bytes
    assert workspace.maintenance_error == ""


def test_agents_own_gc_is_told_to_keep_what_is_young(
    workspace: Workspace, repository: Repository
):
    git("config", "gc.pruneExpire", "now", cwd=repository.path)
    git("config", "gc.worktreePruneExpire", "now", cwd=repository.path)
    maintenance.maintain(workspace)
    for key, value in maintenance.CONFIGURATION.items():
        assert git("config", "--get-all", key, cwd=repository.path) == value


def test_a_clone_without_a_pack_is_no_failure(workspace: Workspace):
    assert maintenance.maintain(workspace) == ""


@pytest.mark.parametrize("lock", ["worktrees", "fetch"])
def test_it_gives_way_to_whoever_works_on_the_clone(
    workspace: Workspace, repository: Repository, lock: str
):
    take = repository.locked if lock == "worktrees" else repository.locked_for_fetch
    with take(wait=dt.timedelta(0)), pytest.raises(RepositoryBusy):
        maintenance.maintain(workspace)
    workspace.refresh_from_db()
    assert (workspace.maintained_at, workspace.maintenance_error) == (None, "")


def test_it_ends_when_the_worker_stops(workspace: Workspace):
    with pytest.raises(GitStopped):
        maintenance.maintain(workspace, stop=lambda: True)


def test_another_hosts_is_refused(workspace: Workspace):
    workspace.host = "elsewhere"
    with pytest.raises(WrongHost):
        maintenance.maintain(workspace)


def test_objects_that_are_missing_are_found_and_told_once(
    workspace: Workspace, path: Path, repository: Repository, told: Told
):
    commit(path)
    lost = git("rev-parse", "HEAD:work.txt", cwd=path)
    (repository.path / "objects" / lost[:2] / lost[2:]).unlink()
    for _ in range(2):
        error = maintenance.maintain(workspace)
    assert lost in error
    workspace.refresh_from_db()
    assert workspace.checked_at is None
    assert lost in workspace.maintenance_error
    assert len(told("workspace.maintenance_failed")) == 1


def test_all_objects_are_looked_for_once_a_week(
    workspace: Workspace, repository: Repository
):
    for _ in range(2):  # what is packed is removed as loose by the second
        maintenance.maintain(workspace)
    packs = repository.path / "objects" / "pack"
    for file in packs.iterdir():
        file.rename(packs / f"{file.name}.away")
    assert "fsck" not in maintenance.maintain(workspace)
    Workspace.objects.update(checked_at=Now() - maintenance.CHECKED_EVERY)
    assert "fsck" in maintenance.maintain(workspace)


def test_what_fails_does_not_keep_the_rest_and_is_told_again_only_after_it_worked(
    workspace: Workspace, repository: Repository, told: Told
):
    packed = repository.path / "packed-refs.lock"
    for count in (1, 2):
        packed.touch()
        for _ in range(2):
            assert "pack-refs" in maintenance.maintain(workspace)
        assert len(told("workspace.maintenance_failed")) == count
        workspace.refresh_from_db()
        assert workspace.sized_at is not None
        packed.unlink()
        assert maintenance.maintain(workspace) == ""


def test_what_fails_besides_is_told_though_something_has_been_failing_already(
    workspace: Workspace, path: Path, repository: Repository, told: Told
):
    (repository.path / "packed-refs.lock").touch()
    maintenance.maintain(workspace)
    commit(path)
    lost = git("rev-parse", "HEAD:work.txt", cwd=path)
    (repository.path / "objects" / lost[:2] / lost[2:]).unlink()
    Workspace.objects.update(checked_at=None)
    for _ in range(2):
        maintenance.maintain(workspace)
    assert len(told("workspace.maintenance_failed")) == 2
    assert lost in told("workspace.maintenance_failed")[1].body


def test_what_fails_besides_is_told_also_where_the_same_command_fails_for_it(
    workspace: Workspace, path: Path, repository: Repository, told: Told
):
    """Of both git says that maintenance failed, with one exit status."""
    (repository.path / "packed-refs.lock").touch()
    maintenance.maintain(workspace)
    commit(path)
    graphs = repository.path / "objects" / "info" / "commit-graphs"
    graphs.mkdir(parents=True, exist_ok=True)
    (graphs / "commit-graph-chain.lock").touch()
    for _ in range(2):
        error = maintenance.maintain(workspace)
    assert error.startswith("pack-refs: git maintenance failed (exit status 1)")
    assert "; commit-graph: git maintenance failed (exit status 1)" in error
    assert len(told("workspace.maintenance_failed")) == 2


def test_planted_configuration_keeps_it_from_running_git(
    workspace: Workspace, repository: Repository, told: Told
):
    git("config", "core.sshCommand", "/bin/false", cwd=repository.path)
    assert "nobody approved" in maintenance.maintain(workspace)
    workspace.refresh_from_db()
    assert workspace.maintained_at is None
    assert told("workspace.maintenance_failed") == []
    git("config", "--unset", "core.sshCommand", cwd=repository.path)
    (repository.path / "packed-refs.lock").touch()
    maintenance.maintain(workspace)
    assert len(told("workspace.maintenance_failed")) == 1


def test_what_is_left_of_a_killed_maintenance_is_cleared(
    workspace: Workspace, repository: Repository
):
    lock_file = repository.path / "objects" / "maintenance.lock"
    lock_file.touch()
    long_ago = lock_file.stat().st_mtime - 2 * 3600
    os.utime(lock_file, (long_ago, long_ago))
    maintenance.maintain(workspace)
    assert not lock_file.exists()


@pytest.mark.parametrize("what", ["clone", "disk"])
def test_a_clone_that_is_gone_is_said_and_reconciliation_tells_of_it(
    workspace: Workspace, repository: Repository, told: Told, what: str
):
    gone = repository.path if what == "clone" else repository.directory.parent
    gone.rename(gone.with_name("away"))
    error = maintenance.maintain(workspace)
    assert error.count("there is no clone") == 1
    assert told("workspace.maintenance_failed") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_a_clone_that_another_user_owns_is_maintained(
    workspace: Workspace, repository: Repository
):
    for directory, _, files in os.walk(repository.path):
        for name in (".", *files):
            os.chown(Path(directory, name), 65534, 65534)
    assert maintenance.maintain(workspace) == ""


def test_objects_that_agents_have_led_elsewhere_are_not_packed(
    workspace: Workspace, repository: Repository, tmp_path: Path
):
    # Packed, they would be the clone's only as long as the other place is there.
    alternates = repository.path / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text(f"{tmp_path}\n")
    assert "nobody approved" in maintenance.maintain(workspace)
    assert not (repository.path / "packed-refs").exists()


def test_what_interrupted_calls_have_left_is_deleted_and_nothing_marks_the_workspace(
    workspace: Workspace, repository: Repository
):
    """The mark would have all of it deleted as soon as a database does not know the workspace."""
    (paths.archiving_path(repository.directory) / "half").mkdir(parents=True)
    (repository.directory / ".making").mkdir()
    paths.disposable_mark(repository.directory).touch()
    assert maintenance.maintain(workspace) == ""
    left = {"control.git", "fetch.lock", "lock", "repository.git"}
    assert set(os.listdir(repository.directory)) == left


def test_what_the_disk_refuses_is_said_with_its_place(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    def refused(*args: Any, **options: Any) -> None:
        raise PermissionError(13, "Permission denied", b"/data/odd\xff\nplace")

    monkeypatch.setattr(stale_locks, "sweep", refused)
    error = maintenance.maintain(workspace)
    assert error == (
        "leftovers: Permission denied: /data/odd\N{REPLACEMENT CHARACTER} place"
    )
