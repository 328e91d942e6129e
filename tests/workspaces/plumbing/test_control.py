from __future__ import annotations

import datetime as dt
import os
import shutil
import stat
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.workspaces.remote import Remote, git
from tests.workspaces.witness import plant
from workspaces.exceptions import (
    ConfigTampered,
    GitDamaged,
    GitFailed,
    GitOutputTooLarge,
    GitTimeout,
)
from workspaces.failures import Failure, classify
from workspaces.plumbing.control import REMOTE, Control
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

MAIN = f"{REMOTE}main".encode()


@pytest.fixture
def control(repository: Repository) -> Control:
    return Control(repository.directory)


def test_it_is_ours_alone_and_has_the_remotes_branches(
    control: Control, remote: Remote
):
    assert stat.S_IMODE(control.path.stat().st_mode) == 0o700
    main = git("rev-parse", "main", cwd=remote.path)
    assert control.references() == {MAIN: main.encode()}
    assert git("rev-parse", "refs/remotes/origin/main", cwd=control.path) == main


def test_objects_lie_with_the_clone_and_nowhere_else(
    control: Control, repository: Repository, remote: Remote
):
    new = remote.push("new")
    control.fetch(remote.url)
    assert git("cat-file", "-t", new, cwd=repository.path) == "commit"
    found = [path for path in (control.path / "objects").rglob("*") if path.is_file()]
    assert [path.name for path in found] == ["alternates"]


def test_it_can_be_moved_with_its_clone(
    control: Control, remote: Remote, tmp_path: Path
):
    control.directory.rename(tmp_path / "moved")
    moved = Control(tmp_path / "moved")
    assert git("cat-file", "-t", "refs/remotes/origin/main", cwd=moved.path)
    remote.push("new")
    moved.fetch(remote.url)


def test_one_that_is_missing_or_was_changed_is_made_anew_and_not_all_fetched_again(
    control: Control, remote: Remote, tmp_path: Path
):
    main = control.references()[MAIN]

    def remove() -> None:
        shutil.rmtree(control.path)

    def change() -> None:
        git("config", f"url.{tmp_path}.insteadOf", remote.url, cwd=control.path)

    def make_a_link() -> None:
        control.path.rename(tmp_path / "elsewhere")
        control.path.symlink_to(tmp_path / "elsewhere")

    def make_a_file() -> None:
        remove()
        control.path.write_text("x")

    def make_shallow() -> None:
        (control.path / "shallow").write_text("nonsense\n")

    for spoil in (remove, change, make_a_link, make_a_file, make_shallow):
        spoil()
        assert control.ensure(), spoil.__name__
        assert control.references() == {MAIN: main}, spoil.__name__
        assert not control.path.is_symlink()
        assert not control.ensure()
    assert (tmp_path / "elsewhere" / "config").exists()
    assert not list(control.directory.glob("control.git.*"))
    assert "insteadOf" not in (control.path / "config").read_text()


@pytest.mark.parametrize("what", ["HEAD", "refs", "reference", "packed"])
def test_damage_of_its_own_is_mended_by_the_fetch_that_meets_it(
    control: Control, remote: Remote, what: str
):
    match what:
        case "HEAD":
            (control.path / "HEAD").unlink()
        case "refs":
            shutil.rmtree(control.path / "refs")
        case "reference":
            (control.path / REMOTE / "main").write_bytes(b"")
        case "packed":
            (control.path / "packed-refs").write_text("no reference\n")
    new = remote.push("new")
    control.fetch(remote.url)
    assert control.references() == {MAIN: new.encode()}


def test_names_that_git_refuses_are_not_taken_over_from_the_clone(
    control: Control, repository: Repository, remote: Remote
):
    main = git("rev-parse", "main", cwd=remote.path)
    packed = repository.path / "packed-refs"
    for name in ("../../heads/x", "..", "", "a b", "x.lock", "good"):
        packed.write_text(f"{main} {REMOTE}{name}\n")
        shutil.rmtree(control.path)
        control.fetch(remote.url)
        assert control.references() == {MAIN: main.encode()}, name


def test_what_an_agent_removed_from_the_clone_is_fetched_again(
    control: Control, repository: Repository, remote: Remote
):
    new = remote.push("new")
    repository.fetch(remote.url, timeout=None, stop=None)
    git("update-ref", "-d", "refs/remotes/origin/main", cwd=repository.path)
    shutil.rmtree(repository.path / "logs")
    git("gc", "--quiet", "--prune=now", cwd=repository.path)
    with pytest.raises(GitFailed):
        repository.run(["cat-file", "-t", new])
    repository.fetch(remote.url, timeout=None, stop=None)
    assert repository.remote_branch("main") == new
    repository.run(["fsck", "--connectivity-only"])


def test_a_refetch_brings_what_is_there_and_damaged(
    repository: Repository, remote: Remote
):
    blob = git("rev-parse", "main:README", cwd=remote.path)
    loose = repository.path / "objects" / blob[:2] / blob[2:]
    loose.chmod(0o644)
    loose.write_bytes(b"")
    loose.unlink()
    repository.fetch(remote.url, timeout=None, stop=None, refetch=True)
    assert repository.run(["cat-file", "blob", blob]).stdout == b"hello\n"


def test_damage_that_git_only_complains_of_is_an_error(
    control: Control, remote: Remote, programs: Path
):
    plant(
        programs / "git",
        "echo 'error: packfile ./objects/pack/pack-1.pack does not match index' >&2",
    )
    with pytest.raises(GitDamaged) as failure:
        control.fetch(remote.url)
    assert classify(failure.value) is Failure.CORRUPT


def test_objects_that_are_kept_elsewhere_are_refused(
    control: Control, repository: Repository, remote: Remote, tmp_path: Path
):
    (repository.path / "objects").rename(tmp_path / "objects")
    (repository.path / "objects").symlink_to(tmp_path / "objects")
    remote.push("new")
    with pytest.raises(ConfigTampered, match="objects"):
        control.fetch(remote.url)
    assert not list(tmp_path.glob("objects/pack/*new*"))


def test_a_remote_cannot_fill_the_disk(
    control: Control, repository: Repository, remote: Remote, settings: Settings
):
    settings.ACW_GIT_MAX_FILE = 1024 * 1024
    before = sorted((repository.path / "objects").rglob("*"))
    # Of random bytes, which nothing makes smaller.
    (remote.work / "large").write_bytes(os.urandom(3 * 1024 * 1024))
    git("add", "large", cwd=remote.work)
    git("commit", "--quiet", "-m", "large", cwd=remote.work)
    git("push", "--quiet", "origin", "HEAD:main", cwd=remote.work)
    with pytest.raises(GitOutputTooLarge, match=r"1048576 bytes.*ACW_GIT_MAX_FILE"):
        control.fetch(remote.url)
    assert not [
        path
        for path in (repository.path / "objects").rglob("*")
        if path not in before and path.is_file() and path.stat().st_size > 1024 * 1024
    ]
    settings.ACW_GIT_MAX_FILE = 8 * 1024 * 1024
    control.fetch(remote.url)


def test_only_the_first_fetch_may_take_as_long_as_a_clone(
    control: Control, programs: Path, settings: Settings, tmp_path: Path
):
    settings.ACW_GIT_TIMEOUT = dt.timedelta(seconds=0.3)
    settings.ACW_CLONE_TIMEOUT = dt.timedelta(seconds=0.6)
    plant(programs / "ssh", "exec sleep 1000")
    with pytest.raises(GitTimeout, match=r"0:00:00.3.*ACW_GIT_TIMEOUT"):
        control.fetch("ssh://git@git.example/project")
    fresh = Control(tmp_path / "fresh")
    (fresh.directory / "repository.git" / "objects").mkdir(parents=True)
    with pytest.raises(GitTimeout, match=r"0:00:00.6"):
        fresh.fetch("ssh://git@git.example/project")


def test_progress_of_a_fetch_is_told(
    repository: Repository, remote: Remote, tmp_path: Path
):
    told: list[str] = []
    for number in range(3):
        remote.push(f"file{number}")
    repository.fetch(remote.url, timeout=None, stop=None, progress=told.append)
    assert told
    assert all(line.isprintable() for line in told)
