from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

from tests.workspaces.remote import Remote, git
from workspaces.models import Worktree
from workspaces.plumbing import clone_files
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

REMOTE = "refs/remotes/origin/"


def as_git_lists(repository: Repository) -> dict[bytes, bytes]:
    listed = git(
        "for-each-ref",
        "--format=%(refname) %(objectname)",
        REMOTE,
        cwd=repository.path,
    ).encode()
    found = dict(line.split(b" ") for line in listed.splitlines())
    found.pop(f"{REMOTE}HEAD".encode(), None)
    return found


def test_a_clone_has_nothing_that_leads_out_of_it(
    repository: Repository, worktree: Worktree
):
    assert clone_files.diversions(repository.path) == []


@pytest.mark.parametrize(
    "name",
    [
        "objects",
        "objects/pack",
        "objects/info",
        "refs/remotes",
        "refs/remotes/origin",
        "worktrees",
    ],
)
def test_a_link_in_the_place_of_a_directory_is_found(
    repository: Repository, worktree: Worktree, tmp_path: Path, name: str
):
    place = repository.path / name
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    assert clone_files.diversions(repository.path) == [name]


@pytest.mark.parametrize("name", ["objects/info/alternates", "commondir"])
def test_what_has_git_look_elsewhere_is_found(repository: Repository, name: str):
    (repository.path / name).symlink_to("/nowhere")
    assert clone_files.diversions(repository.path) == [name]


def test_links_and_pipes_are_found_wherever_git_reads_or_writes(
    repository: Repository, worktree: Worktree, tmp_path: Path
):
    clone = repository.path
    git("pack-refs", "--all", cwd=clone)
    (admin,) = (clone / "worktrees").iterdir()
    assert clone_files.oddities(clone) == []
    for name in (
        "refs/heads/acw",
        "refs/heads/x",
        "refs/acw",
        "refs/acw/archive/7",
        "logs/refs/heads/acw/other",
        "logs/refs/remotes/origin/other",
        "objects/zz",
        "objects/info/commit-graph",
        "objects/pack/multi-pack-index",
        "info/attributes",
        "info/exclude",
        f"worktrees/{admin.name}/HEAD",
        f"worktrees/{admin.name}/index",
        f"worktrees/{admin.name}/gitdir",
        f"worktrees/{admin.name}/logs/HEAD",
        f"worktrees/{admin.name}/rebase-merge/head-name",
    ):
        place, was = clone / name, tmp_path / "was"
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            place.rename(was)
        place.symlink_to(tmp_path)
        assert clone_files.oddities(clone) == [name]
        place.unlink()
        os.mkfifo(place)
        assert clone_files.oddities(clone) == [name]
        place.unlink()
        if was.exists():
            was.rename(place)
    assert clone_files.oddities(clone) == []


def test_what_git_itself_makes_of_other_kinds_is_not_odd(
    repository: Repository, worktree: Worktree
):
    (admin,) = (repository.path / "worktrees").iterdir()
    (admin / "HEAD").unlink()
    (admin / "HEAD").symlink_to("refs/heads/acw/work")
    (admin / "modules/x").mkdir(parents=True)
    (admin / "modules/x/hook").symlink_to("/elsewhere")
    # Its whole path would be too long for a socket.
    with socket.socket(socket.AF_UNIX) as daemon, contextlib.chdir(admin):
        daemon.bind("fsmonitor--daemon.ipc")
    assert clone_files.oddities(repository.path) == []
    (admin / "HEAD").unlink()
    (admin / "HEAD").symlink_to("refs/heads/../../../x")
    assert clone_files.oddities(repository.path) == [f"worktrees/{admin.name}/HEAD"]


def test_more_than_can_be_looked_at_is_odd(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(clone_files, "_MOST_WALKED", 50)
    (repository.path / "refs/many").mkdir()
    for n in range(50):
        (repository.path / f"refs/many/{n}").touch()
    assert clone_files.oddities(repository.path) == ["refs/many"]


def test_packed_references_that_are_no_file_are_found(repository: Repository):
    (repository.path / "packed-refs").symlink_to("/nowhere")
    assert clone_files.diversions(repository.path) == ["packed-refs"]


def test_what_is_no_reference_is_removed_and_what_it_leads_to_is_not(
    repository: Repository, tmp_path: Path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    top = repository.path / REMOTE
    (top / "below").mkdir()
    (top / "text").write_text("no object\n")
    (top / "link").symlink_to(outside / "file")
    (top / "directory").symlink_to(outside)
    (top / "main.lock").write_text("")
    os.mkfifo(top / "below" / "pipe")
    removed = clone_files.remove_unreadable(repository.path, REMOTE)
    assert sorted(name.removeprefix(REMOTE) for name in removed) == [
        "below/pipe",
        "directory",
        "link",
        "text",
    ]
    assert (outside / "file").exists()
    assert git("rev-parse", "origin/main", "origin/HEAD", cwd=repository.path)
    assert (top / "main.lock").exists()


def test_branches_are_those_that_git_lists(repository: Repository, remote: Remote):
    for branch in ("topic", "a/b/c", "über"):
        remote.push("x", content=branch, branch=branch)
    repository.fetch(remote.url, timeout=None, stop=None)
    found = clone_files.references(repository.path, REMOTE)
    assert found == as_git_lists(repository)
    assert len(found) == 4


def test_packed_branches_are_found_and_newer_files_count_more(
    repository: Repository, remote: Remote
):
    remote.push("x", branch="topic")
    repository.fetch(remote.url, timeout=None, stop=None)
    git("tag", "-a", "-m", "x", "v1", "origin/main", cwd=repository.path)
    git("pack-refs", "--all", cwd=repository.path)
    assert clone_files.references(repository.path, REMOTE) == as_git_lists(repository)
    new = remote.push("y")
    repository.fetch(remote.url, timeout=None, stop=None)
    found = clone_files.references(repository.path, REMOTE)
    assert found == as_git_lists(repository)
    assert found[f"{REMOTE}main".encode()] == new.encode()


def test_without_any_branch_there_is_none(repository: Repository):
    git("update-ref", "-d", f"{REMOTE}main", cwd=repository.path)
    git("symbolic-ref", "-d", f"{REMOTE}HEAD", cwd=repository.path)
    assert clone_files.references(repository.path, REMOTE) == {}


def test_files_that_are_no_plain_references_are_left_to_git(repository: Repository):
    odd = repository.path / REMOTE / "odd"
    for content in ("ref: refs/heads/x\n", "", "0" * 39, "x" * 1000):
        odd.write_text(content)
        assert clone_files.references(repository.path, REMOTE) is None
    odd.unlink()
    odd.symlink_to("main")
    assert clone_files.references(repository.path, REMOTE) is None
    odd.unlink()
    os.mkfifo(odd)
    assert clone_files.references(repository.path, REMOTE) is None


def test_git_is_asked_for_many_branches(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(clone_files, "MOST_REFS", 3)
    commit = git("rev-parse", "origin/main", cwd=repository.path)
    for number in range(3):
        git("update-ref", f"{REMOTE}b{number}", commit, cwd=repository.path)
    assert clone_files.references(repository.path, REMOTE) is None


@pytest.mark.parametrize("name", ["commondir", "reftable"])
def test_references_that_are_kept_elsewhere_are_left_to_git(
    repository: Repository, name: str
):
    (repository.path / name).mkdir()
    assert clone_files.references(repository.path, REMOTE) is None


def test_packed_references_that_are_no_small_file_are_left_to_git(
    repository: Repository,
):
    packed = repository.path / "packed-refs"
    packed.write_text("#" * 3_000_000)
    assert clone_files.references(repository.path, REMOTE) is None
    packed.unlink()
    os.mkfifo(packed)
    assert clone_files.references(repository.path, REMOTE) is None


def test_a_reference_is_there_as_a_file_or_is_not_known(repository: Repository):
    assert clone_files.has_reference(repository.path, f"{REMOTE}main")
    assert not clone_files.has_reference(repository.path, f"{REMOTE}HEAD")
    assert not clone_files.has_reference(repository.path, f"{REMOTE}../origin/main")
    assert not clone_files.has_reference(repository.path, f"{REMOTE}nothing")
    git("pack-refs", "--all", cwd=repository.path)
    assert not clone_files.has_reference(repository.path, f"{REMOTE}main")
