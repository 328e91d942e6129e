from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.workspaces.remote import Remote, git
from workspaces.fetch import fetch_workspace
from workspaces.models import Workspace, Worktree
from workspaces.plumbing import stale_locks
from workspaces.pruning import removal
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

MINUTE, HOUR = 60.0, 3600.0


def leave(path: Path, *, age: float) -> Path:
    """As a killed git would, so many seconds ago."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True)
    path.touch()
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def complaint(*paths: Path) -> str:
    return "\n".join(
        f"error: Unable to create '{path}': File exists.\n\nAnother git process seems to be running"
        for path in paths
    )


def test_each_kind_is_removed_at_its_age_and_not_before(repository: Repository):
    ages = {
        "config.lock": MINUTE,
        "shallow.lock": 2 * MINUTE,
        "packed-refs.lock": HOUR,
        "HEAD.lock": HOUR,
        "refs/remotes/origin/main.lock": HOUR,
        "refs/heads/acw/x.lock": HOUR,
    }
    for directory in (repository.path, repository.control):
        for name, age in ages.items():
            path = leave(directory / name, age=age - 10)
            assert stale_locks.remove_named(repository, complaint(path)) == []
            assert path.exists(), name
            leave(path, age=age + 10)
            assert stale_locks.remove_named(repository, complaint(path)) == [path]
            assert not path.exists(), name


def test_a_lock_of_the_configuration_is_named_without_its_ending(
    repository: Repository,
):
    lock = leave(repository.path / "config.lock", age=HOUR)
    said = f"error: could not lock config file {repository.path}/config: File exists"
    assert stale_locks.remove_named(repository, said) == [lock]


def test_only_what_git_named_is_removed(repository: Repository):
    named, other = (
        leave(repository.path / name, age=2 * HOUR)
        for name in ("shallow.lock", "packed-refs.lock")
    )
    assert stale_locks.remove_named(repository, complaint(named)) == [named]
    assert other.exists()


def test_nothing_else_is_removed_whatever_git_or_a_remote_says(
    repository: Repository, worktree: Worktree, tmp_path: Path
):
    (tmp_path / "outside").mkdir()
    (repository.path / "refs/linked").symlink_to(tmp_path / "outside")
    admin = next((repository.path / "worktrees").iterdir())
    left = [
        leave(tmp_path / "outside/x.lock", age=2 * HOUR),
        leave(admin / "index.lock", age=9 * HOUR),
        leave(admin / "HEAD.lock", age=9 * HOUR),
        leave(repository.path / "index.lock", age=9 * HOUR),
        leave(Path(worktree.path) / "poetry.lock", age=9 * HOUR),
    ]
    named = [*left, repository.path / "refs/linked/x.lock", tmp_path / "gone.lock"]
    assert stale_locks.remove_named(repository, complaint(*named)) == []
    assert stale_locks.sweep(repository) == []
    assert all(path.exists() for path in left)


def test_a_link_of_that_name_is_left_alone(repository: Repository, tmp_path: Path):
    victim = leave(tmp_path / "victim", age=9 * HOUR)
    link = repository.path / "shallow.lock"
    link.symlink_to(victim)
    os.utime(link, (1, 1), follow_symlinks=False)
    assert stale_locks.sweep(repository) == []
    assert link.is_symlink()
    assert victim.exists()


def test_directories_of_any_depth_are_looked_through(repository: Repository):
    directory = f"{repository.path}/refs/heads"
    for _ in range(1200):
        directory += "/d"
        os.mkdir(directory)
    lock = leave(Path(directory, "x.lock"), age=2 * HOUR)
    try:
        assert stale_locks.sweep(repository) == [lock]
    finally:
        # What clears up after tests cannot go so deep.
        removal.delete_tree(repository.directory, whole=True)


def test_half_written_packs_go_when_no_fetch_takes_so_long(repository: Repository):
    old = leave(repository.path / "objects/pack/tmp_pack_a", age=2 * HOUR)
    new = leave(repository.path / "objects/pack/tmp_pack_b", age=HOUR / 2)
    loose = leave(repository.path / "objects/12/tmp_obj_a", age=2 * HOUR)
    assert set(stale_locks.sweep(repository)) == {old, loose}
    assert new.exists()
    assert git("fsck", cwd=repository.path) == ""


def test_a_git_that_lives_keeps_them(repository: Repository):
    lock = leave(repository.path / "shallow.lock", age=9 * HOUR)
    held_up = subprocess.Popen(
        ["sleep", "1000"],
        cwd=repository.path,
    )
    try:
        assert stale_locks.sweep(repository) == []
        assert lock.exists()
    finally:
        held_up.kill()
        held_up.wait()
    assert stale_locks.sweep(repository) == [lock]


def test_a_fetch_removes_what_stands_in_its_way_at_the_second_time(
    workspace: Workspace, repository: Repository, remote: Remote
):
    lock = leave(repository.path / "refs/remotes/origin/main.lock", age=2 * HOUR)
    commit = remote.push("new")
    first = fetch_workspace(workspace)
    assert (first.failure, first.again_soon) == ("lock", True)
    assert lock.exists()
    workspace.refresh_from_db()
    assert fetch_workspace(workspace).changed == 1
    assert not lock.exists()
    assert git("rev-parse", "origin/main", cwd=repository.path) == commit
