from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.factories import WorkspaceFactory, WorktreeFactory
from workspaces import paths
from workspaces.exceptions import InvalidName, OutsideDataDirectory
from workspaces.models import Workspace, Worktree


@pytest.mark.parametrize("name", ["a", "0", "demo", "a.b_c-d", "x" * 100])
def test_a_name_that_is_one_directory_is_accepted(name: str):
    assert paths.workspace_directory(name).parent == paths.workspaces_directory()


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "-x", "a/b", "a\\b", "A", "ä", "a\n", "x" * 101]
)
def test_every_other_name_is_refused(name: str):
    with pytest.raises(InvalidName, match="begins with a-z or 0-9"):
        paths.workspace_directory(name)


def test_a_link_on_the_way_to_the_data_directory_is_the_operators(
    settings: Settings, tmp_path: Path
):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    settings.ACW_DATA_DIR = tmp_path / "link"
    assert paths.data_directory() == tmp_path / "disk"
    workspace = WorkspaceFactory.build()
    assert paths.own_directory(workspace).parent == tmp_path / "disk" / "workspaces"


@pytest.mark.parametrize(
    ("branch", "begin"),
    [
        ("main", "main-"),
        ("feature/login", "feature-login-"),
        ("../../etc", "etc-"),
        ("…", "worktree-"),
        ("x" * 200, "x" * 60 + "-"),
    ],
)
def test_a_worktrees_directory_is_named_after_its_branch(branch: str, begin: str):
    directory = paths.workspace_directory("demo")
    path = paths.new_worktree_path(directory, branch)
    assert path.parent == directory / "worktrees"
    assert path.name.startswith(begin)
    assert path != paths.new_worktree_path(directory, branch)


def test_a_row_leads_to_its_own_places():
    workspace: Workspace = WorkspaceFactory.build(name="demo")
    worktree: Worktree = WorktreeFactory.build(workspace=workspace)
    assert paths.own_directory(workspace) == paths.workspace_directory("demo")
    assert paths.own_worktree_path(worktree) == Path(worktree.path)


@pytest.mark.parametrize("path", ["/etc", "/", "", "demo/repository.git"])
def test_a_workspaces_path_that_is_not_its_own_is_refused(path: str):
    workspace = WorkspaceFactory.build(path=path)
    with pytest.raises(OutsideDataDirectory, match="ACW_DATA_DIR changed"):
        paths.own_directory(workspace)


@pytest.mark.parametrize(
    "name",
    [
        "../../../../etc",
        "..",
        ".",
        "",
        "x/y",
        "../repository.git",
        "../../other/worktrees/x",
    ],
)
def test_a_worktrees_path_that_is_not_its_own_is_refused(name: str):
    workspace = WorkspaceFactory.build(name="demo")
    parent = paths.workspace_directory("demo") / "worktrees"
    worktree = WorktreeFactory.build(workspace=workspace, path=f"{parent}/{name}")
    with pytest.raises(OutsideDataDirectory, match="not directly below"):
        paths.own_worktree_path(worktree)


@pytest.mark.parametrize("swapped", ["worktree", "worktrees", "workspace"])
def test_a_link_below_the_data_directory_is_refused(tmp_path: Path, swapped: str):
    worktree = WorktreeFactory.build(workspace=WorkspaceFactory.build(name="demo"))
    path = Path(worktree.path)
    victim = tmp_path / "victim"
    victim.mkdir()
    link = {
        "worktree": path,
        "worktrees": path.parent,
        "workspace": path.parent.parent,
    }[swapped]
    link.parent.mkdir(parents=True)
    link.symlink_to(victim)
    with pytest.raises(OutsideDataDirectory, match="symbolic link"):
        paths.own_worktree_path(worktree)
