from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.workspaces.conftest import Told
from tests.workspaces.factories import AdminFactory
from tests.workspaces.remote import Remote, commit, git
from workspaces import git as runner
from workspaces import paths
from workspaces.exceptions import GitDamaged, GitFailed, GitStopped
from workspaces.fetch import fetch_workspace
from workspaces.fetching import healing
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def loose(repository: Repository, sha: str) -> Path:
    return repository.path / "objects" / sha[:2] / sha[2:]


def damage(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


def aside(repository: Repository) -> list[str]:
    """Names of what was put aside."""
    found = paths.quarantine_path(repository.directory).glob("*/*")
    return sorted(path.name for path in found)


def is_whole(repository: Repository) -> bool:
    return git("fsck", "--full", "--no-dangling", cwd=repository.path) == ""


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"nonsense", id="nonsense"),
    ],
)
def test_a_damaged_object_is_put_aside_and_fetched_again_and_nobody_is_told(
    workspace: Workspace,
    repository: Repository,
    remote: Remote,
    told: Told,
    content: bytes,
):
    AdminFactory()
    tip = git("rev-parse", "main", cwd=remote.path)
    damage(loose(repository, tip), content)
    remote.push("new")
    assert fetch_workspace(workspace).error == ""
    assert aside(repository) == [f"{tip[:2]}-{tip[2:]}"]
    assert is_whole(repository)
    assert told("workspace.sync_failed") == []
    workspace.refresh_from_db()
    assert workspace.healed_at is not None
    assert workspace.fetch_problem == ""


def test_what_only_the_clone_had_is_taken_out_of_a_truncated_pack(
    workspace: Workspace,
    repository: Repository,
    worktree: Worktree,
    remote: Remote,
    told: Told,
):
    """Of which git complains without failing."""
    AdminFactory()
    mine = commit(Path(worktree.path), content="mine\n")
    git("repack", "-a", "-d", "-q", cwd=repository.path)
    (pack,) = (repository.path / "objects/pack").glob("*.pack")
    damage(pack, pack.read_bytes()[:-10])
    remote.push("new")
    assert fetch_workspace(workspace).error == ""
    names = {path.name for path in pack.parent.glob(f"{pack.stem}.*")}
    assert names == set()
    assert f"pack-{pack.name}" in aside(repository)
    assert is_whole(repository)
    assert git("show", f"{mine}:work.txt", cwd=repository.path) == "mine"
    assert told("workspace.sync_failed") == []


def fail(at: str, error: Exception) -> Callable[..., runner.Result]:
    """A runner of git whose command that has ``at`` among its arguments fails."""
    run = runner.run

    def run_or_fail(arguments: list[str], **options: Any) -> runner.Result:
        if at in arguments:
            raise error
        return run(arguments, **options)

    return run_or_fail


@pytest.fixture
def mine(
    workspace: Workspace, repository: Repository, worktree: Worktree, remote: Remote
) -> str:
    """A commit that only the clone has, in a pack that is damaged."""
    commit_id = commit(Path(worktree.path), content="mine\n")
    git("repack", "-a", "-d", "-q", cwd=repository.path)
    (pack,) = (repository.path / "objects/pack").glob("*.pack")
    damage(pack, pack.read_bytes()[:-10])
    remote.push("new")
    return commit_id


@pytest.mark.parametrize("at", ["--refetch", "unpack-objects"])
def test_what_was_interrupted_is_gone_on_with_by_the_next_fetch(
    workspace: Workspace,
    repository: Repository,
    mine: str,
    monkeypatch: pytest.MonkeyPatch,
    at: str,
):
    with monkeypatch.context() as patched:
        patched.setattr(runner, "run", fail(at, GitStopped("x", "was ended")))
        with pytest.raises(GitStopped):
            fetch_workspace(workspace)
    assert healing.is_unfinished(repository)
    workspace.refresh_from_db()
    assert fetch_workspace(workspace).error == ""
    assert not healing.is_unfinished(repository)
    assert git("show", f"{mine}:work.txt", cwd=repository.path) == "mine"
    assert is_whole(repository)


def test_what_only_the_clone_had_waits_for_no_remote_that_is_away(
    workspace: Workspace,
    repository: Repository,
    mine: str,
    monkeypatch: pytest.MonkeyPatch,
):
    away = GitFailed("fetch", 128, stderr="Could not resolve host")
    with monkeypatch.context() as patched:
        patched.setattr(runner, "run", fail("--refetch", away))
        assert fetch_workspace(workspace).failure == "network"
    assert git("show", f"{mine}:work.txt", cwd=repository.path) == "mine"
    workspace.refresh_from_db()
    assert fetch_workspace(workspace).error == ""
    assert is_whole(repository)


def test_what_a_full_disk_has_no_room_for_is_taken_out_later(
    workspace: Workspace,
    repository: Repository,
    mine: str,
    monkeypatch: pytest.MonkeyPatch,
):
    full = GitFailed("unpack-objects", 128, stderr="No space left on device")
    with monkeypatch.context() as patched:
        patched.setattr(runner, "run", fail("unpack-objects", full))
        assert fetch_workspace(workspace).failure == "disk_full"
    workspace.refresh_from_db()
    assert fetch_workspace(workspace).error == ""
    assert git("show", f"{mine}:work.txt", cwd=repository.path) == "mine"


def test_a_pipe_in_the_quarantine_is_not_waited_for(
    repository: Repository, remote: Remote
):
    planted = paths.quarantine_path(repository.directory) / "unfinished-1"
    planted.mkdir(parents=True)
    os.mkfifo(planted / "pack-1.pack")
    healing.heal(repository, remote.url, "")
    assert not healing.is_unfinished(repository)


def test_an_empty_object_that_git_did_not_name_is_found(
    repository: Repository, remote: Remote
):
    blob = git("rev-parse", "main:README", cwd=remote.path)
    damage(loose(repository, blob), b"")
    healing.heal(repository, remote.url, "")
    assert is_whole(repository)


def test_what_git_did_not_name_is_looked_for(repository: Repository, remote: Remote):
    blob = git("rev-parse", "main:README", cwd=remote.path)
    damage(loose(repository, blob), b"nonsense")
    healing.heal(repository, remote.url, "")
    assert aside(repository) == [f"{blob[:2]}-{blob[2:]}"]
    assert is_whole(repository)


def test_an_index_of_all_packs_that_keeps_git_from_everything_is_put_aside(
    workspace: Workspace, repository: Repository, remote: Remote
):
    git("repack", "-a", "-d", "--quiet", cwd=repository.path)
    git("multi-pack-index", "write", "--no-progress", cwd=repository.path)
    index = repository.path / "objects/pack/multi-pack-index"
    healing.heal(repository, remote.url, "multi-pack-index file is too small")
    assert index.exists()
    damage(index, b"\0" * index.stat().st_size)
    remote.push("new")
    assert fetch_workspace(workspace).error == ""
    assert aside(repository) == ["pack-multi-pack-index"]
    assert is_whole(repository)


def test_a_sound_object_stays_whatever_a_remote_says_of_it(
    repository: Repository, remote: Remote
):
    tip = git("rev-parse", "main", cwd=remote.path)
    said = (
        f"remote: error: object file objects/{tip[:2]}/{tip[2:]} is empty\n"
        "remote: error: object file objects/../../../x is empty"
    )
    healing.heal(repository, remote.url, said)
    assert aside(repository) == []
    git("repack", "-a", "-d", "-q", cwd=repository.path)
    (pack,) = (repository.path / "objects/pack").glob("*.pack")
    said = f"remote: error: packfile {pack.name} does not match index"
    healing.heal(repository, remote.url, said)
    assert aside(repository) == []


def test_what_is_behind_a_link_is_not_moved(
    repository: Repository, remote: Remote, tmp_path: Path
):
    sha = "12" + "3" * 38
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / sha[2:]).touch()
    (repository.path / "objects/12").symlink_to(tmp_path / "outside")
    assert (
        healing._put_aside(
            repository, f"object {sha} is corrupt", tmp_path / "aside", stop=None
        )
        == []
    )
    assert (tmp_path / "outside" / sha[2:]).exists()


def test_what_nobody_has_any_more_is_told_and_not_tried_again(
    workspace: Workspace,
    repository: Repository,
    worktree: Worktree,
    remote: Remote,
    told: Told,
):
    AdminFactory()
    mine = commit(Path(worktree.path))
    damage(loose(repository, mine), b"")
    with pytest.raises(GitDamaged, match="git fsck"):
        healing.heal(repository, remote.url, f"error: object file {mine} is empty")
    tip = git("rev-parse", "main", cwd=remote.path)
    damage(loose(repository, tip), b"")
    remote.push("new")
    failed = fetch_workspace(workspace)
    assert failed.failure == "corrupt"
    (notification,) = told("workspace.sync_failed")
    assert notification.data["class"] == "corrupt"
    workspace.refresh_from_db()
    healed_at = workspace.healed_at
    assert healed_at is not None
    fetch_workspace(workspace)
    workspace.refresh_from_db()
    assert workspace.healed_at == healed_at
