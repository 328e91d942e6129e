from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.conftest import Told
from tests.workspaces.factories import WorkspaceFactory
from workspaces import holds
from workspaces.exceptions import QuotaExceeded
from workspaces.models import Workspace, Worktree
from workspaces.upkeep import quota, sizes
from workspaces.upkeep.reconcile import reconcile

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("admin")]


def test_beyond_the_hard_limit_no_worktree_is_acquired_and_none_is_touched(
    workspace: Workspace, worktree: Worktree, settings: Settings
):
    settings.ACW_WORKSPACE_HARD_LIMIT = 1024**2
    Workspace.objects.update(size_bytes=3 * 1024**2)
    with pytest.raises(QuotaExceeded, match=r"takes 3\.0 MB, more than the 1\.0 MB of"):
        holds.acquire(workspace, holder="agent", branch="another")
    assert Path(worktree.path).is_dir()
    Workspace.objects.update(size_bytes=1024**2)
    holds.acquire(workspace, holder="agent", branch="another")


@pytest.mark.parametrize(("limit", "taken"), [(0, 10**15), (10, None), (10, 10)])
def test_without_a_limit_or_a_sample_all_is_let_through(
    settings: Settings, limit: int, taken: int | None
):
    settings.ACW_WORKSPACE_HARD_LIMIT = limit
    quota.check(WorkspaceFactory(size_bytes=taken))


def test_the_soft_limit_is_told_once_for_each_crossing(
    workspace: Workspace, settings: Settings, told: Told
):
    settings.ACW_WORKSPACE_SOFT_LIMIT = 100
    for size, count in ((100, 0), (101, 1), (500, 1), (100, 1), (101, 2)):
        Workspace.objects.update(size_bytes=size)
        quota.tell(workspace.pk)
        assert len(told("workspace.over_quota")) == count


def test_it_is_told_by_a_pass_with_what_can_be_made_again(
    workspace: Workspace, worktree: Worktree, settings: Settings, told: Told
):
    cache = Path(worktree.path) / "node_modules"
    cache.mkdir()
    (cache / "file").write_bytes(os.urandom(3 * 1024**2))
    settings.ACW_WORKSPACE_SOFT_LIMIT = 2 * 1024**2
    for _ in range(2):
        reconcile()
    (notification,) = told("workspace.over_quota")
    again = sizes.measure(cache).size_bytes
    assert notification.data["recreatable_bytes"] == again
    assert f"{worktree.branch}: 3.0 MB, of which 3.0 MB" in notification.body
    assert (cache / "file").exists()
