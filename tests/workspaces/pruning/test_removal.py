from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.depths import dug
from workspaces import paths
from workspaces.exceptions import NotArchivable, OutsideDataDirectory
from workspaces.pruning import removal

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def open_to_all(settings: Settings) -> Iterator[Path]:
    """A data directory that other users reach, as they do not reach pytest's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        settings.ACW_DATA_DIR = Path(name, "data")
        yield settings.ACW_DATA_DIR


@pytest.fixture
def workspace() -> Path:
    """The directory of a workspace with a clone, a control directory and a worktree ``one``."""
    directory = paths.workspaces_directory() / "demo"
    for name in ("repository.git/worktrees/one", "control.git", "trash"):
        (directory / name).mkdir(parents=True)
    one = directory / "worktrees" / "one"
    (one / "below").mkdir(parents=True)
    (one / "file").touch()
    (one / ".git").write_text("gitdir: …\n")
    return directory


def test_what_is_refused_and_what_is_not(workspace: Path, tmp_path: Path):
    data = paths.data_directory()
    outside = tmp_path / "outside"
    (outside / "x").mkdir(parents=True)
    (workspace / "worktrees" / "link").symlink_to(outside)
    (workspace / "worktrees" / "own" / ".git").mkdir(parents=True)
    (workspace / "worktrees" / "file").touch()
    (data / "workspaces" / "linked").mkdir()
    (data / "workspaces" / "linked" / "worktrees").symlink_to(outside)
    (data / "workspaces" / "alias").symlink_to(workspace)
    refused = {
        "the clone": workspace / "repository.git",
        "inside the clone": workspace / "repository.git" / "worktrees" / "one",
        "the control directory": workspace / "control.git",
        "inside the control directory": workspace / "control.git" / "refs",
        "holds the clone": workspace,
        "holds every clone": data / "workspaces",
        "the data directory": data,
        "above the data directory": data.parent,
        "the root": Path("/"),
        "outside": outside / "x",
        "all worktrees": workspace / "worktrees",
        "below a worktree": workspace / "worktrees" / "one" / "below",
        "attachments": data / "attachments" / "ab" / "cd",
        "a repository of its own": workspace / "worktrees" / "own",
        "a file": workspace / "worktrees" / "file",
        "the root is a link": workspace / "worktrees" / "link",
        "a parent is a link": data / "workspaces" / "linked" / "worktrees" / "x",
        "the workspace is a link": data / "workspaces" / "alias" / "worktrees" / "one",
        "..": workspace / "worktrees" / ".." / "repository.git",
        ".. out of it": workspace / "worktrees" / ".." / ".." / ".." / "x",
        "relative": Path("worktrees/one"),
        "a workspace that cannot be": data / "workspaces" / ".x" / "worktrees" / "one",
    }
    accepted = [label for label, path in refused.items() if _accepts(path)]
    assert accepted == []
    assert _accepts(workspace / "worktrees" / "one")
    assert _accepts(workspace / "trash" / "7")


def _accepts(path: Path) -> bool:
    try:
        removal.check(path)
    except OutsideDataDirectory:
        return False
    return True


def test_deleting_refuses_clones_and_what_lies_outside(workspace: Path, tmp_path: Path):
    (tmp_path / "kept").mkdir()
    for path in (
        workspace / "repository.git",
        workspace / "repository.git" / "worktrees",
        workspace,
        tmp_path / "kept",
    ):
        with pytest.raises(OutsideDataDirectory):
            removal.delete_tree(path)
        assert path.exists()


def test_a_workspace_on_its_way_out_goes_as_a_whole(workspace: Path):
    removal.delete_tree(workspace, whole=True)
    assert not workspace.exists()


def test_a_directory_is_moved_to_the_trash(workspace: Path):
    one, trash = workspace / "worktrees" / "one", workspace / "trash" / "7"
    removal.move(one, trash)
    assert not one.exists()
    assert (trash / "file").exists()
    (workspace / "worktrees" / "two").mkdir()
    with pytest.raises(FileExistsError):
        removal.move(workspace / "worktrees" / "two", trash)
    assert (trash / "file").exists()


def test_a_root_that_is_swapped_for_a_link_meanwhile_is_put_back(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    one, trash = workspace / "worktrees" / "one", workspace / "trash" / "7"
    victim = tmp_path / "victim"
    shutil.copytree(one, victim)
    rename = os.rename

    def swapped(source: str, target: str, **options: int) -> None:
        monkeypatch.setattr(os, "rename", rename)
        rename(one, workspace / "worktrees" / "elsewhere")
        one.symlink_to(victim)
        rename(source, target, **options)

    monkeypatch.setattr(os, "rename", swapped)
    with pytest.raises(OutsideDataDirectory, match="replaced"):
        removal.move(one, trash)
    assert one.is_symlink()
    assert not os.path.lexists(trash)
    assert (victim / "file").exists()


def test_a_parent_that_is_swapped_for_a_link_meanwhile_leads_nowhere(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    one, trash = workspace / "worktrees" / "one", workspace / "trash" / "7"
    victims = tmp_path / "victims"
    shutil.copytree(workspace / "worktrees", victims)
    check = removal.check

    def swapped(path: Path) -> None:
        check(path)
        if path == trash:
            (workspace / "worktrees").rename(workspace / "away")
            (workspace / "worktrees").symlink_to(victims)

    monkeypatch.setattr(removal, "check", swapped)
    with pytest.raises(OSError, match="worktrees"):
        removal.move(one, trash)
    assert (victims / "one" / "file").exists()
    assert (workspace / "away" / "one" / "file").exists()


def test_a_tree_goes_with_read_only_directories_and_nothing_behind_its_links(
    open_to_all: Path, workspace: Path
):
    """As the service account, since root may do everything."""
    outside = open_to_all.parent / "outside"
    (outside / "directory").mkdir(parents=True)
    (outside / "directory" / "kept").touch(0o600)
    (outside / "directory").chmod(0o500)
    top = workspace / "trash" / "7"
    (top / "closed" / "below" / "deep").mkdir(parents=True)
    (top / "closed" / "below" / "file").touch(0o400)
    (top / "closed" / "link").symlink_to(outside / "directory")
    (top / "file link").symlink_to(outside / "directory" / "kept")
    (top / "closed" / "below" / "deep").chmod(0o000)
    (top / "closed" / "below").chmod(0o500)
    (top / "closed").chmod(0o000)
    as_service_account(
        f"removal.delete_tree(Path({str(top)!r}))", owned=open_to_all.parent
    )
    assert not top.exists()
    assert (outside / "directory" / "kept").exists()
    assert (outside / "directory").stat().st_mode & 0o777 == 0o500
    assert (outside / "directory" / "kept").stat().st_mode & 0o777 == 0o600
    removal.delete_tree(top)  # nothing to delete is no error


@pytest.mark.usefixtures("open_to_all")
def test_a_read_only_directory_is_moved_and_keeps_its_mode(workspace: Path):
    one, moved = workspace / "worktrees" / "one", workspace / "trash" / "7"
    one.chmod(0o555)
    code = f"removal.move(Path({str(one)!r}), Path({str(moved)!r}))"
    assert as_service_account(code, owned=workspace) == ""
    assert moved.stat().st_mode & 0o777 == 0o555


@pytest.mark.usefixtures("open_to_all")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_what_another_user_owns_is_found_before_anything_is_deleted(workspace: Path):
    one = workspace / "worktrees" / "one"
    (one / "theirs").mkdir()
    (one / "theirs" / "file").touch()
    said = as_service_account(
        f"removal.check_deletable(Path({str(one)!r}))",
        owned=workspace,
        but=one / "theirs",
    )
    assert "theirs belongs to another user (uid 0)" in said
    assert (one / "file").exists()
    removal.check_deletable(one)  # root may


def as_service_account(code: str, *, owned: Path, but: Path | None = None) -> str:
    """Run this as a user who may not do everything, to whom ``owned`` belongs; return what it raised."""
    if os.geteuid() == 0:
        for directory in (owned, *owned.rglob("*")):
            if but is None or (directory != but and but not in directory.parents):
                os.chown(directory, 65534, 65534, follow_symlinks=False)
    script = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import django; django.setup()\n"
        "from pathlib import Path\n"
        "from workspaces.pruning import removal\n"
        "if os.geteuid() == 0:\n    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"try:\n    {code}\n"
        "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "acw.settings",
            "ACW_DATA_DIR": str(paths.data_directory()),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_tree_that_is_a_link_is_refused(workspace: Path, tmp_path: Path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "file").touch()
    link = workspace / "trash" / "7"
    link.symlink_to(tmp_path / "victim")
    with pytest.raises(OutsideDataDirectory, match="symbolic link"):
        removal.delete_tree(link)
    assert (tmp_path / "victim" / "file").exists()


def test_a_tree_deeper_than_any_path_may_be_is_deleted(workspace: Path):
    top = workspace / "trash" / "7"
    top.mkdir()
    with dug(top, 3000, name="deeper") as deepest:
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=deepest))
    removal.delete_tree(top)
    assert not top.exists()


def test_another_file_system_is_found_before_anything_is_deleted(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    one = workspace / "worktrees" / "one"
    lstat = os.lstat

    def mounted(path: str | Path) -> os.stat_result:
        status = lstat(path)
        if not str(path).endswith("below"):
            return status
        values = list(status)
        values[2] += 1  # st_dev
        return os.stat_result(values)

    monkeypatch.setattr(os, "lstat", mounted)
    with pytest.raises(NotArchivable, match="below is another file system"):
        removal.check_deletable(one)


def test_what_lies_too_deep_to_be_looked_at_is_found_before_anything_is_deleted(
    workspace: Path,
):
    one = workspace / "worktrees" / "one"
    with dug(one, 21), pytest.raises(NotArchivable, match="cannot be looked at"):
        removal.check_deletable(one)
