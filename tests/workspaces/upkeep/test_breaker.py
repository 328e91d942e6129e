from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.workspaces.conftest import Told
from tests.workspaces.factories import HOST, WorktreeFactory
from workspaces import paths
from workspaces.models import WorkspaceHost, Worktree
from workspaces.upkeep import breaker
from workspaces.upkeep.breaker import Count
from workspaces.upkeep.reconcile import reconcile

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("admin")]


@pytest.fixture
def mark(data_dir: Path) -> Path:
    return data_dir / "workspaces" / ".mark"


@pytest.mark.parametrize(
    ("worktrees", "missing", "unknown", "stops"),
    [
        (300, 10, 0, False),
        (300, 11, 0, True),
        (300, 0, 11, True),
        (300, 5, 5, False),
        (300, 5, 6, True),
        (2, 2, 0, False),
        (12, 3, 0, True),
        (15, 3, 0, False),
        (12, 0, 3, False),
        (11, 0, 3, True),
        (0, 0, 0, False),
    ],
)
def test_more_than_ten_or_a_fifth_at_once_are_too_many(
    worktrees: int, missing: int, unknown: int, stops: bool
):
    WorktreeFactory()
    count = Count(worktrees=worktrees, missing=missing, unknown=unknown)
    assert bool(breaker.too_many(count)) is stops


def test_an_empty_table_stops_what_is_on_the_disk_from_being_touched():
    reason = breaker.too_many(Count(worktrees=0, missing=0, unknown=1))
    assert "is this another database?" in reason


def test_worktrees_that_are_all_away_are_not_marked_and_it_is_told_once(
    worktree: Worktree, path: Path, told: Told, tmp_path: Path
):
    for _ in range(3):
        WorktreeFactory(workspace=worktree.workspace)
    for _ in range(2):
        report = reconcile()
    assert report.stopped.startswith("of 4 worktrees 3 are missing")
    assert not Worktree.objects.exclude(state=Worktree.State.READY).exists()
    (notification,) = told("workspace.reconcile_stopped")
    assert "reconcile --force" in notification.body
    host = WorkspaceHost.objects.get()
    assert host.stopped_at is not None

    report = reconcile(force=True)
    assert report.stopped == ""
    assert Worktree.objects.filter(state=Worktree.State.MISSING).count() == 3
    assert WorkspaceHost.objects.filter(
        stopped_at__isnull=True, stopped_reason=""
    ).exists()
    assert reconcile().stopped == ""  # they are known to be missing now


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_a_disk_that_is_not_mounted_stops_it(
    worktree: Worktree, data_dir: Path, told: Told, how: str
):
    reconcile()
    (data_dir / "workspaces").rename(data_dir / "away")
    if how == "empty":
        (data_dir / "workspaces").mkdir()
    assert "is the disk mounted" in reconcile().stopped
    worktree.workspace.refresh_from_db()
    assert worktree.workspace.state == "ready"
    shutil.rmtree(data_dir / "workspaces", ignore_errors=True)
    (data_dir / "away").rename(data_dir / "workspaces")
    assert reconcile().stopped == ""
    assert len(told("workspace.reconcile_stopped")) == 1


def test_another_disk_in_its_place_stops_it(
    worktree: Worktree, path: Path, mark: Path, told: Told
):
    reconcile()
    mark.unlink()
    shutil.rmtree(path)
    assert "has lost its mark" in reconcile().stopped
    worktree.refresh_from_db()
    assert worktree.state == Worktree.State.READY
    reconcile(force=True)
    assert mark.read_text().strip() == WorkspaceHost.objects.get().mark
    assert reconcile().stopped == ""


def test_another_database_stops_it(worktree: Worktree, mark: Path):
    reconcile()
    WorkspaceHost.objects.all().delete()
    (paths.workspaces_directory() / "demo" / "worktrees" / "unknown").mkdir()
    assert "another database" in reconcile().stopped
    assert not list(paths.workspaces_directory().glob("demo/.stray/*"))
    before = mark.read_text()
    assert reconcile(force=True).stopped == ""
    assert mark.read_text() == before


def test_the_first_pass_that_was_interrupted_is_begun_anew(
    worktree: Worktree, mark: Path
):
    WorkspaceHost.objects.create(host=HOST, mark="0" * 32)
    assert reconcile().stopped == ""
    assert mark.read_text() == f"{'0' * 32}\n"


def test_the_disks_room_is_recorded(worktree: Worktree):
    reconcile()
    host = WorkspaceHost.objects.get()
    assert host.looked_at is not None
    assert 0 < (host.disk_free or 0) <= (host.disk_total or 0)
