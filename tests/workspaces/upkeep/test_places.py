from __future__ import annotations

from pathlib import Path

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
