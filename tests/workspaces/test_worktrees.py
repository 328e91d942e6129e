from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.workspaces.remote import Remote, commit, git
from tests.workspaces.witness import Tripwire, plant
from workspaces import git as runner
from workspaces import paths, worktrees
from workspaces.exceptions import (
    BranchInUse,
    EmptyRepository,
    GitFailed,
    GitStopped,
    OutsideDataDirectory,
)
from workspaces.git import Result
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(repository: Repository) -> Path:
    return paths.new_worktree_path(repository.directory, "topic")


def add(repository: Repository, path: Path, branch: str, default: str = "main") -> None:
    worktrees.add(repository, path, branch, default=default)


def listed(repository: Repository) -> str:
    return git("worktree", "list", "--porcelain", cwd=repository.path)


def test_a_new_branch_begins_at_the_default_one(
    repository: Repository, path: Path, remote: Remote
):
    add(repository, path, "topic")
    assert (path / "README").read_text() == "hello\n"
    assert git("branch", "--show-current", cwd=path) == "topic"
    assert git("status", "--porcelain", cwd=path) == ""
    assert git("rev-parse", "HEAD", cwd=path) == repository.remote_branch("main")


def test_a_branch_of_the_remote_begins_where_that_is(
    repository: Repository, path: Path, remote: Remote
):
    theirs = remote.push("x", branch="topic")
    repository.fetch(remote.url, timeout=None, stop=None)
    add(repository, path, "topic")
    assert git("rev-parse", "HEAD", cwd=path) == theirs


def test_a_branch_of_the_clone_is_checked_out_as_it_is(
    repository: Repository, path: Path
):
    add(repository, path, "topic")
    mine = commit(path)
    worktrees.discard(repository, path)
    add(repository, path, "topic")
    assert git("rev-parse", "HEAD", cwd=path) == mine


def test_the_remotes_default_branch_itself_can_be_checked_out(
    repository: Repository, path: Path
):
    add(repository, path, "main")
    assert git("branch", "--show-current", cwd=path) == "main"


def test_it_is_locked_against_prune_and_writes_no_configuration(
    repository: Repository, path: Path
):
    before = (repository.path / "config").read_text()
    add(repository, path, "topic")
    assert (repository.path / "config").read_text() == before
    hidden = path.with_name("away")
    path.rename(hidden)
    git("worktree", "prune", "--expire=now", cwd=repository.path)
    hidden.rename(path)
    assert git("status", "--porcelain", cwd=path) == ""


def test_a_branch_that_another_worktree_has_is_refused(
    repository: Repository, path: Path
):
    add(repository, path, "topic")
    other = path.with_name("other")
    with pytest.raises(BranchInUse, match="'topic' is checked out in another"):
        add(repository, other, "topic")
    assert not other.exists()
    assert git("branch", "--show-current", cwd=path) == "topic"


@pytest.mark.parametrize("default", ["", "gone"])
def test_without_a_commit_to_begin_at_it_is_refused(
    repository: Repository, path: Path, default: str
):
    with pytest.raises(EmptyRepository, match="push one and fetch"):
        add(repository, path, "topic", default)


def test_what_fails_leaves_nothing_behind(repository: Repository, path: Path):
    with pytest.raises(GitStopped):
        worktrees.add(repository, path, "topic", default="main", stop=lambda: True)
    assert not path.exists()
    assert repository.local_branch("topic") is None
    assert str(path) not in listed(repository)


def test_a_failed_checkout_takes_back_the_branch_it_made(
    repository: Repository, path: Path
):
    (repository.path / "objects" / "info").mkdir(exist_ok=True)
    tree = git("rev-parse", "refs/remotes/origin/main:README", cwd=repository.path)
    found = [*repository.path.glob(f"objects/{tree[:2]}/{tree[2:]}")]
    for pack in repository.path.glob("objects/pack/*.pack"):
        unpack(repository, pack)
        found = [repository.path / "objects" / tree[:2] / tree[2:]]
    found[0].unlink()
    with pytest.raises(GitFailed):
        add(repository, path, "topic")
    assert not path.exists()
    assert repository.local_branch("topic") is None


def unpack(repository: Repository, pack: Path) -> None:
    moved = pack.with_name("../../outside.pack").resolve()
    pack.rename(moved)
    pack.with_suffix(".idx").unlink()
    os.system(f"git -C {repository.path} unpack-objects -q < {moved}")  # noqa: S605


def test_a_branch_with_work_is_not_taken_back(repository: Repository, path: Path):
    add(repository, path, "topic")
    mine = commit(path)
    worktrees.discard(repository, path)
    with pytest.raises(GitStopped):
        worktrees.add(repository, path, "topic", default="main", stop=lambda: True)
    assert repository.local_branch("topic") == mine


def test_no_program_of_the_repository_is_run(
    repository: Repository, path: Path, remote: Remote, tmp_path: Path
):
    tripwire = Tripwire(tmp_path)
    program = str(tripwire.program)
    remote.push(".gitattributes", "* filter=evil\n")
    repository.fetch(remote.url, timeout=None, stop=None)
    included = tmp_path / "included"
    included.write_text(f'[filter "evil"]\nsmudge = {program}\nprocess = {program}\n')
    # Configuration that counts in the worktree only.
    git(
        "config",
        f"includeIf.gitdir:{repository.path}/worktrees/.path",
        str(included),
        cwd=repository.path,
    )
    git("config", "filter.evil.smudge", program, cwd=repository.path)
    git("config", "filter.evil.required", "true", cwd=repository.path)
    plant(repository.path / "hooks" / "post-checkout", program)
    add(repository, path, "topic")
    assert (path / "README").read_text() == "hello\n"
    assert tripwire.fired == ""


def test_its_registration_is_found_by_its_path(repository: Repository, path: Path):
    assert worktrees.registration(repository, path) is None
    add(repository, path, "topic")
    admin = worktrees.registration(repository, path)
    assert admin is not None
    assert admin.parent == repository.path / "worktrees"
    assert worktrees.points_back(path, admin)


@pytest.mark.parametrize("kind", ["missing", "directory", "link", "other"])
def test_a_directory_that_is_not_that_worktree_does_not_point_back(
    repository: Repository, path: Path, kind: str, tmp_path: Path
):
    add(repository, path, "topic")
    admin = worktrees.registration(repository, path)
    assert admin
    link = path / ".git"
    content = link.read_text()
    link.unlink()
    if kind == "directory":
        link.mkdir()
    elif kind == "link":
        (tmp_path / "real").write_text(content)
        link.symlink_to(tmp_path / "real")
    elif kind == "other":
        link.write_text(content.replace("worktrees/", "worktrees/x"))
    assert not worktrees.points_back(path, admin)


def test_forgetting_leaves_the_branch(repository: Repository, path: Path):
    add(repository, path, "topic")
    mine = commit(path)
    worktrees.delete_tree(path)
    worktrees.forget(repository, path)
    assert worktrees.registration(repository, path) is None
    assert repository.local_branch("topic") == mine
    worktrees.forget(repository, path)  # nothing to forget is no error


def test_forgetting_one_leaves_others_whose_directory_is_away(
    repository: Repository, path: Path, worktree: Worktree
):
    add(repository, path, "topic")
    other = Path(worktree.path)
    other.rename(other.with_name("away"))
    worktrees.delete_tree(path)
    worktrees.forget(repository, path)
    other.with_name("away").rename(other)
    assert git("status", "--porcelain", cwd=other) == ""


def test_a_worktree_is_known_by_its_own_file_where_both_name_each_other(
    repository: Repository, path: Path, tmp_path: Path
):
    add(repository, path, "topic")
    admin = worktrees.known_as(repository, path)
    assert admin == worktrees.registration(repository, path)
    assert admin
    link = (path / ".git").read_text()
    for other in (
        "gitdir: /etc/worktrees/x\n",
        f"gitdir: {repository.path}/worktrees/..\n",
        f"gitdir: {admin}\0\n",
        "nothing",
        "",
    ):
        (path / ".git").write_text(other)
        assert worktrees.known_as(repository, path) is None
    (path / ".git").write_text(link)
    moved = path.with_name("moved")
    path.rename(moved)
    assert worktrees.known_as(repository, moved) is None
    assert worktrees.known_as(repository, path) is None


@pytest.mark.parametrize("kind", ["directory", "fifo", "link", "missing"])
def test_what_is_no_regular_file_is_not_read(tmp_path: Path, kind: str):
    file = tmp_path / "file"
    match kind:
        case "directory":
            file.mkdir()
        case "fifo":
            os.mkfifo(file)
        case "link":
            (tmp_path / "real").write_text("x")
            file.symlink_to(tmp_path / "real")
    assert worktrees.read_line(file) is None
    (tmp_path / "regular").write_text("x" * 10)
    assert worktrees.read_regular(tmp_path / "regular", most=3) == b"xxx"


def test_its_lock_says_why_and_is_at_no_time_gone(repository: Repository, path: Path):
    worktrees.add(repository, path, "topic", default="main", reason="acw:7:1")
    admin = worktrees.registration(repository, path)
    assert admin
    assert (admin / "locked").read_text() == "acw:7:1\n"
    worktrees.lock(admin, "acw:7:2")
    assert "locked acw:7:2" in listed(repository)
    assert [*admin.glob(".locked-*")] == []
    link = admin.with_name("link")
    link.symlink_to(admin)
    with pytest.raises(OutsideDataDirectory, match="symbolic link"):
        worktrees.lock(link, "acw:7:3")


def test_what_was_checked_out_need_not_be_read_again_to_be_seen_unchanged(
    repository: Repository, path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = runner.run

    def as_if_in_one_tick(arguments: Sequence[str], **options: Any) -> Result:
        done = run(arguments, **options)
        if arguments[0] == "read-tree":
            os.utime(path / "README", (1e9, 1e9))
        return done

    monkeypatch.setattr(runner, "run", as_if_in_one_tick)
    add(repository, path, "topic")
    # Says what differs from the index by its times, and does not look any further.
    assert git("diff-files", cwd=path) == ""
