from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.workspaces.remote import commit, git
from tests.workspaces.upkeep.conftest import everything, registered
from workspaces.models import Worktree
from workspaces.repository import Repository
from workspaces.upkeep import registrations
from workspaces.upkeep.registrations import Link

pytestmark = pytest.mark.django_db


def rebuild(repository: Repository, worktree: Worktree) -> Path:
    return registrations.rebuild(
        repository, Path(worktree.path), worktree.branch, default="main"
    )


def test_what_agents_put_in_the_place_of_a_registration_is_not_read(
    worktree: Worktree, path: Path, repository: Repository, tmp_path: Path
):
    admins = repository.path / "worktrees"
    (admins / "link").symlink_to(tmp_path)
    (tmp_path / "gitdir").write_text(f"{path}/.git\n")
    (admins / "fifo").mkdir()
    os.mkfifo(admins / "fifo" / "gitdir")
    (admins / "lines").mkdir()
    (admins / "lines" / "gitdir").write_text("one\ntwo\n")
    (admins / "file").write_text("x")
    assert [each.path for each in registrations.all_of(repository)] == [path]
    assert registered(repository, path).lock_reason.startswith("acw")


def test_a_relative_path_is_one_from_the_registration(
    worktree: Worktree, path: Path, repository: Repository
):
    admin = registered(repository, path).admin
    (admin / "gitdir").write_text(f"../../../worktrees/{path.name}/.git\n")
    assert registered(repository, path).admin == admin


def test_links_are_told_apart(worktree: Worktree, path: Path, repository: Repository):
    admin = registered(repository, path).admin
    link = path / ".git"
    assert registrations.link_of(path, admin) is Link.POINTS_BACK
    assert registrations.link_of(path, None) is Link.ELSEWHERE
    link.write_text("gitdir: /nowhere/at/all\n")
    assert registrations.link_of(path, admin) is Link.BROKEN
    link.write_text("something\n")
    assert registrations.link_of(path, admin) is Link.BROKEN
    link.unlink()
    assert registrations.link_of(path, admin) is Link.ABSENT
    link.symlink_to(admin)
    assert registrations.link_of(path, admin) is Link.ODD


def test_a_branch_that_another_worktree_has_is_not_taken_from_it(
    worktree: Worktree, path: Path, repository: Repository, tmp_path: Path
):
    tip = commit(path)
    shutil.rmtree(registered(repository, path).admin)
    git("worktree", "add", "--quiet", str(tmp_path / "own"), worktree.branch, cwd=repository.path)  # fmt: skip
    rebuild(repository, worktree)
    assert git("rev-parse", "--abbrev-ref", "HEAD", cwd=path) == "HEAD"
    assert git("rev-parse", "HEAD", cwd=path) == tip


def test_without_its_branch_it_begins_where_the_remote_is(
    worktree: Worktree, path: Path, repository: Repository
):
    commit(path)
    before = everything(path)
    shutil.rmtree(registered(repository, path).admin)
    git("branch", "--quiet", "-D", worktree.branch, cwd=repository.path)
    rebuild(repository, worktree)
    main = git("rev-parse", "refs/remotes/origin/main", cwd=repository.path)
    assert git("rev-parse", "HEAD", cwd=path) == main
    assert git("status", "--porcelain", cwd=path) == "?? work.txt"
    assert everything(path) == before


@pytest.mark.parametrize("step", ["read-tree", "rename", "relink"])
def test_an_interruption_leaves_what_the_next_one_finishes(
    worktree: Worktree,
    path: Path,
    repository: Repository,
    step: str,
    monkeypatch: pytest.MonkeyPatch,
):
    (path / "new").write_text("new\n")
    shutil.rmtree(registered(repository, path).admin)

    def killed(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    target = {
        "read-tree": (Repository, "run"),
        "rename": (os, "rename"),
        "relink": (registrations, "relink"),
    }[step]
    with monkeypatch.context() as patched:
        patched.setattr(*target, killed)
        with pytest.raises(KeyboardInterrupt):
            rebuild(repository, worktree)
    if step == "relink":
        registrations.relink(path, registered(repository, path).admin)
    else:
        rebuild(repository, worktree)
    assert git("status", "--porcelain", cwd=path) == "?? new"
    assert git("rev-parse", "--abbrev-ref", "HEAD", cwd=path) == worktree.branch


def test_a_name_that_is_taken_gets_a_number(
    worktree: Worktree, path: Path, repository: Repository
):
    shutil.rmtree(registered(repository, path).admin)
    (repository.path / "worktrees" / path.name).mkdir(parents=True)
    assert rebuild(repository, worktree).name == f"{path.name}1"


def test_a_link_is_not_written_through(
    worktree: Worktree, path: Path, repository: Repository, tmp_path: Path
):
    registration = registered(repository, path)
    outside = tmp_path / "outside"
    outside.write_text("keep\n")
    (registration.admin / "gitdir.new").symlink_to(outside)
    (path / ".git").unlink()
    (path / ".git").symlink_to(outside)
    registrations.repoint(registration, path)
    registrations.relink(path, registration.admin)
    assert outside.read_text() == "keep\n"
    assert git("status", "--porcelain", cwd=path) == ""
