from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from tests.workspaces.conftest import make_idle
from tests.workspaces.depths import dug
from workspaces import paths
from workspaces.exceptions import QuotaExceeded
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository
from workspaces.upkeep import quota, sizes

HOUR = dt.timedelta(hours=1)


def taken(path: Path) -> int:
    return path.lstat().st_blocks * 512


def test_each_inode_counts_once_and_nothing_behind_a_link(tmp_path: Path):
    top, outside = tmp_path / "top", tmp_path / "outside"
    (top / "below").mkdir(parents=True)
    outside.mkdir()
    (outside / "large").write_bytes(os.urandom(100_000))
    one = top / "one"
    one.write_bytes(os.urandom(20_000))
    os.link(one, top / "below" / "again")
    (top / "way").symlink_to(outside)
    (top / "file").symlink_to(outside / "large")
    sparse = top / "sparse"
    with sparse.open("wb") as file:
        file.truncate(10**9)

    size = sizes.measure(top)

    counted = [top, top / "below", one, top / "way", top / "file", sparse]
    assert size.size_bytes == sum(map(taken, counted))
    assert size.is_whole
    assert size.recreatable_bytes == 0


def test_what_tools_make_again_is_counted_apart(tmp_path: Path):
    cache = tmp_path / "node_modules" / "deep"
    cache.mkdir(parents=True)
    (cache / "file").write_bytes(os.urandom(50_000))
    (tmp_path / "work").write_bytes(os.urandom(50_000))
    size = sizes.measure(tmp_path)
    again = [tmp_path / "node_modules", cache, cache / "file"]
    assert size.recreatable_bytes == sum(map(taken, again))
    assert size.recreatable_bytes < size.size_bytes


def test_what_is_left_out_and_what_is_not_there_takes_nothing(tmp_path: Path):
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "file").write_bytes(os.urandom(50_000))
    size = sizes.measure(tmp_path, without=[tmp_path / "large"])
    assert size.size_bytes == taken(tmp_path)
    assert sizes.measure(tmp_path / "gone").size_bytes == 0


@pytest.mark.parametrize("why", ["limit", "stop"])
def test_what_takes_too_long_is_said_to_be_more(tmp_path: Path, why: str):
    (tmp_path / "file").write_bytes(os.urandom(50_000))
    if why == "limit":
        size = sizes.measure(tmp_path, limit=dt.timedelta(seconds=-1))
    else:
        size = sizes.measure(tmp_path, stop=lambda: True)
    assert not size.is_whole


def test_a_directory_that_cannot_be_walked_is_counted_in_part(tmp_path: Path):
    # A directory itself takes no room everywhere.
    (tmp_path / "file").write_bytes(b"x" * 5000)
    with dug(tmp_path, 25):
        size = sizes.measure(tmp_path)
    assert size.size_bytes > 0


@pytest.mark.django_db
def test_worktrees_and_the_clone_are_sampled_and_added_up(
    workspace: Workspace, worktree: Worktree, repository: Repository
):
    assert sizes.sample_due([workspace.pk], limit=HOUR) == {workspace.pk}
    worktree.refresh_from_db()
    workspace.refresh_from_db()
    assert worktree.size_bytes == sizes.measure(Path(worktree.path)).size_bytes
    whole = sizes.measure(repository.directory).size_bytes
    holding = taken(repository.directory / "worktrees")
    assert workspace.size_bytes == whole - holding
    assert workspace.clone_bytes == workspace.size_bytes - worktree.size_bytes


@pytest.mark.django_db
def test_only_what_was_used_since_is_sampled_again(
    workspace: Workspace, worktree: Worktree
):
    sizes.sample_due([workspace.pk], limit=HOUR)
    assert sizes.sample_due([workspace.pk], limit=HOUR) == set()
    Worktree.objects.update(last_used_at=Now() + HOUR)
    assert sizes.sample_due([workspace.pk], limit=HOUR) == {workspace.pk}
    make_idle(worktree, days=3)
    Worktree.objects.update(sized_at=Now() - sizes.EVERY - HOUR)
    assert sizes.sample_due([workspace.pk], limit=HOUR) == {workspace.pk}


@pytest.mark.django_db
def test_where_acquires_are_refused_for_it_room_that_was_made_is_seen_at_once(
    workspace: Workspace, worktree: Worktree, settings: Settings
):
    large = Path(worktree.path) / "large"
    large.write_bytes(os.urandom(3 * 1024**2))
    sizes.sample_due([workspace.pk], limit=HOUR)
    settings.ACW_WORKSPACE_HARD_LIMIT = 2 * 1024**2
    with pytest.raises(QuotaExceeded):
        quota.check(workspace)
    large.unlink()
    sizes.sample_due([workspace.pk], limit=HOUR)
    quota.check(workspace)


@pytest.mark.django_db
def test_one_that_is_missing_takes_nothing(workspace: Workspace, worktree: Worktree):
    sizes.sample_due([workspace.pk], limit=HOUR)
    shutil.rmtree(worktree.path)
    Worktree.objects.update(state=Worktree.State.MISSING)
    sizes.sample_due([workspace.pk], limit=HOUR)
    workspace.refresh_from_db()
    assert workspace.size_bytes == workspace.clone_bytes
    assert sizes.sample_due([workspace.pk], limit=HOUR) == set()


@pytest.mark.django_db
def test_what_was_stopped_in_the_middle_is_no_sample(
    workspace: Workspace, worktree: Worktree
):
    sizes.sample_worktree(worktree, stop=lambda: True)
    sizes.sample_clone(workspace, stop=lambda: True)
    worktree.refresh_from_db()
    workspace.refresh_from_db()
    assert (worktree.sized_at, workspace.sized_at) == (None, None)


@pytest.mark.django_db
def test_what_there_was_no_time_for_is_the_next_calls(
    workspace: Workspace, worktree: Worktree
):
    assert sizes.sample_due([workspace.pk], limit=-HOUR) == set()
    assert sizes.sample_due([workspace.pk], limit=HOUR, stop=lambda: True) == set()
    worktree.refresh_from_db()
    assert worktree.size_bytes is None


@pytest.mark.django_db
def test_a_sample_that_is_not_whole_takes_nothing_back(
    workspace: Workspace, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    part = sizes.Size(size_bytes=1, recreatable_bytes=0, is_whole=False)
    monkeypatch.setattr(sizes, "measure", lambda *args, **options: part)
    Worktree.objects.update(size_bytes=10**12)
    worktree.refresh_from_db()
    sizes.sample_worktree(worktree)
    worktree.refresh_from_db()
    assert worktree.size_bytes == 10**12
    assert worktree.sized_at is not None


@pytest.mark.django_db
def test_archives_that_are_kept_outside_the_clone_count(workspace: Workspace):
    sizes.sample_clone(workspace)
    workspace.refresh_from_db()
    before = workspace.clone_bytes or 0
    bundle = paths.bundle_path(workspace.name, 1)
    bundle.parent.mkdir(parents=True)
    bundle.write_bytes(os.urandom(200_000))
    sizes.sample_clone(workspace)
    workspace.refresh_from_db()
    assert (workspace.clone_bytes or 0) - before >= 200_000


@pytest.mark.django_db
def test_what_can_never_be_counted_does_not_keep_a_number_that_was_larger(
    workspace: Workspace, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    """Else no room that is made would ever let an agent acquire again."""
    locked = Path(worktree.path) / "locked"
    locked.mkdir()
    opened = os.open

    def refused(path: Any, *args: Any, **options: Any) -> int:
        if path == str(locked):
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *args, **options)

    monkeypatch.setattr(os, "open", refused)
    Worktree.objects.update(size_bytes=10**12)
    worktree.refresh_from_db()
    sizes.sample_worktree(worktree)
    worktree.refresh_from_db()
    assert 0 < (worktree.size_bytes or 0) < 10**12
