from __future__ import annotations

from pathlib import Path

import pytest

from workspaces import paths
from workspaces.exceptions import OutsideDataDirectory
from workspaces.holding import aside
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def place(repository: Repository, name: str = "topic") -> Path:
    path = repository.directory / "worktrees" / name
    path.mkdir(parents=True)
    (path / "file").write_text("work")
    return path


def test_it_is_moved_with_all_that_is_in_it_and_not_deleted(repository: Repository):
    moved = [aside.put_aside(repository, place(repository)) for _ in range(2)]
    assert not place(repository, "other").with_name("topic").exists()
    stray = paths.stray_directory(repository.directory)
    assert {path.parent for path in moved} == {stray}
    assert moved[0] != moved[1]
    for path in moved:
        assert path.name.startswith("topic-20")
        assert (path / "file").read_text() == "work"
    assert stray.stat().st_mode & 0o777 == 0o700


def test_a_link_is_moved_and_not_what_it_leads_to(
    repository: Repository, tmp_path: Path
):
    path = place(repository).with_name("link")
    path.symlink_to(tmp_path)
    assert aside.put_aside(repository, path).is_symlink()
    assert tmp_path.is_dir()


def test_the_clone_and_what_is_no_worktree_is_never_moved(
    repository: Repository, tmp_path: Path
):
    path = place(repository)
    (tmp_path / "outside").mkdir()
    for refused in (
        repository.path,
        repository.directory,
        repository.directory / "worktrees",
        paths.control_path(repository.directory),
        repository.path / "refs" / "heads",
        path / "file",
        repository.directory / "worktrees" / ".." / "repository.git",
        tmp_path / "outside",
    ):
        with pytest.raises(OutsideDataDirectory):
            aside.put_aside(repository, refused)
    assert (path / "file").exists()


def test_nothing_goes_through_a_link(repository: Repository, tmp_path: Path):
    path = place(repository)
    paths.stray_directory(repository.directory).symlink_to(tmp_path)
    with pytest.raises(OutsideDataDirectory, match="symbolic link"):
        aside.put_aside(repository, path)
    elsewhere = tmp_path / "elsewhere"
    path.parent.rename(elsewhere)
    path.parent.symlink_to(elsewhere)
    with pytest.raises(OutsideDataDirectory):
        aside.put_aside(repository, path)
    assert (elsewhere / "topic" / "file").exists()
