from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from tests.workspaces.conftest import Told
from tests.workspaces.factories import HOST, WorktreeFactory
from tests.workspaces.remote import Remote
from workspaces import clones, holds, paths
from workspaces.models import Workspace, WorkspaceHost, Worktree
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


def test_on_another_disk_no_lease_is_ended(
    workspace: Workspace, mark: Path, told: Told
):
    held = holds.acquire(workspace, holder="agent")
    reconcile()
    Worktree.objects.update(
        heartbeat_at=Now() - dt.timedelta(hours=2),
        lease_expires_at=Now() - dt.timedelta(hours=1),
    )
    for file in (Path(held.path), *Path(workspace.path).glob("worktrees/*/*")):
        os.utime(file, (1, 1))
    ours = mark.read_text()
    mark.write_text("another\n")
    report = reconcile()
    assert report.stopped
    assert report.expired == 0
    assert not told("worktree.lease_expired")
    mark.write_text(ours)
    assert reconcile().expired == 1


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


def test_another_data_directory_stops_it_and_is_told(
    worktree: Worktree, data_dir: Path, told: Told, settings: Settings
):
    reconcile()
    shutil.copytree(data_dir, data_dir.with_name("copy"))
    settings.ACW_DATA_DIR = data_dir.with_name("copy")
    for _ in range(2):
        report = reconcile()
        assert "was ACW_DATA_DIR changed?" in report.stopped
    assert len(told("workspace.reconcile_stopped")) == 1
    settings.ACW_DATA_DIR = data_dir
    assert reconcile().stopped == ""
    assert WorkspaceHost.objects.get().stopped_at is None


def test_one_that_leads_through_a_link_is_named_to_the_doctor(
    worktree: Worktree, data_dir: Path, remote: Remote
):
    clones.add_workspace("other", remote.url)
    demo = data_dir / "workspaces" / "demo"
    demo.rename(data_dir / "moved")
    demo.symlink_to(data_dir / "moved")
    assert reconcile().stopped == ""
    (failed,) = WorkspaceHost.objects.get().found["failed"]
    assert "demo is a symbolic link" in failed


def test_the_data_directory_of_another_host_of_this_database_is_named(
    worktree: Worktree, settings: Settings
):
    reconcile()
    settings.ACW_HOST = "renamed"
    Workspace.objects.update(host="renamed")
    assert f"has the mark of host {HOST}" in reconcile().stopped


def test_a_mark_that_nobody_writes_to_is_not_waited_for(worktree: Worktree, mark: Path):
    reconcile()
    mark.unlink()
    os.mkfifo(mark)
    assert "has lost its mark" in reconcile().stopped


def test_it_goes_on_when_the_last_workspace_was_removed(
    worktree: Worktree, data_dir: Path
):
    reconcile()
    breaker.stop(HOST, "much was missing")
    Worktree.objects.all().delete()
    Workspace.objects.all().delete()
    shutil.rmtree(data_dir)
    assert reconcile().stopped == ""
    assert WorkspaceHost.objects.get().stopped_at is None


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
