from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.workspaces.factories import HOST, WorkspaceFactory, WorktreeFactory
from workspaces import paths
from workspaces.models import Workspace
from workspaces.repository import Repository
from workspaces.upkeep import places

pytestmark = pytest.mark.django_db


def test_only_this_hosts_and_only_what_was_cloned_is_looked_at(workspace: Workspace):
    WorkspaceFactory(host="elsewhere")
    WorkspaceFactory(state=Workspace.State.CLONING)
    WorkspaceFactory(path="/somewhere/else/repository.git")
    WorktreeFactory(workspace=workspace)
    refused: list[str] = []
    (found,) = places.places_of(HOST, refused=refused)
    assert (found.workspace, found.is_there, len(found.rows)) == (workspace, True, 1)
    assert ["was ACW_DATA_DIR changed?" in each for each in refused] == [True]
    assert places.places_of(HOST, name="none") == []


def test_a_clone_that_could_not_be_made_is_neither_gone_nor_back(data_dir: Path):
    failed = WorkspaceFactory(state=Workspace.State.FAILED)
    (found,) = places.places_of(HOST)
    assert (found.is_gone, found.is_back, found.is_there) == (False, False, False)
    places.mark_clone(found)
    failed.refresh_from_db()
    assert (failed.state, failed.clone_progress) == (Workspace.State.FAILED, "")


def test_what_is_being_added_or_removed_is_not_unknown(
    workspace: Workspace, data_dir: Path
):
    for name in (".adding-1", ".removing-2", "going"):
        (data_dir / "workspaces" / name).mkdir()
    paths.disposable_mark(data_dir / "workspaces" / "going").touch()
    assert places.unknown_directories() == []
    (data_dir / "workspaces" / "odd").mkdir()
    assert places.unknown_directories() == ["odd"]


def test_what_was_put_aside_is_counted(repository: Repository):
    assert places.stray_count(repository) == 0
    (paths.stray_directory(repository.directory) / "one").mkdir(parents=True)
    assert places.stray_count(repository) == 1


def test_a_directory_that_cannot_be_looked_into_is_unknown_and_a_disks_own_is_not(
    workspace: Workspace, data_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("lost+found", "others"):
        (data_dir / "workspaces" / name).mkdir()
    stat, lstat = os.stat, os.lstat

    def looked(path: Any, *, by: Callable[..., Any], **options: Any) -> Any:
        if Path(path).parent.name in {"lost+found", "others"}:
            raise PermissionError(13, "Permission denied", str(path))
        return by(path, **options)

    monkeypatch.setattr(os, "stat", partial(looked, by=stat))
    monkeypatch.setattr(os, "lstat", partial(looked, by=lstat))
    assert places.unknown_directories() == ["others"]


def test_a_workspace_that_cannot_be_looked_into_is_named_and_does_not_keep_the_rest(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    other = WorkspaceFactory()
    is_dir = Path.is_dir

    def refused(path: Path) -> bool:
        if str(path) == workspace.path:
            raise PermissionError(13, "Permission denied", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", refused)
    failed: list[str] = []
    (found,) = places.places_of(HOST, refused=failed)
    assert found.workspace == other
    assert failed == [f"{workspace.name}: Permission denied: {workspace.path}"]
