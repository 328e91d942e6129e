from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest

from tests.workspaces.remote import commit, git
from workspaces import worktrees
from workspaces.archiving import caches, registration, store
from workspaces.archiving.reading import Top
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def left_out(repository: Repository, path: Path) -> set[bytes]:
    admin = worktrees.registration(repository, path)
    assert admin is not None
    with store.opened(repository) as ours, Top(path) as top, Top(admin) as registered:
        registration.copy_index(registered, registration.read(registered), ours.path)
        return set(caches.left_out(ours, top))


def test_only_caches_that_git_ignores_as_a_whole_are_left_out(
    repository: Repository, worktree: Worktree
):
    path = Path(worktree.path)
    (path / ".gitignore").write_text("node_modules\nbuild\ndist\n.env\n*.pyc\ntarget\n")
    for name in ("node_modules", "build", "dist", "venv", "target"):
        (path / name).mkdir()
        (path / name / "file").touch()
    for name in (".env", "module.pyc", "notes.o"):
        (path / name).touch()
    # Something in it is committed; another is not ignored; in a third is a repository.
    commit(path, "build/run.sh")
    (path / "dist" / "deep").mkdir()
    git("init", "--quiet", str(path / "dist" / "deep"))
    assert left_out(repository, path) == {b"node_modules", b"target", b"module.pyc"}


def test_a_cache_with_a_bare_repository_is_none(
    repository: Repository, worktree: Worktree
):
    path = Path(worktree.path)
    (path / ".gitignore").write_text("build\ndist\ntarget\n")
    git("init", "--quiet", "--bare", str(path / "build" / "backup.git"))
    git("init", "--quiet", "--bare", str(path / "dist"))
    (path / "target" / "refs").mkdir(parents=True)
    assert left_out(repository, path) == {b"target"}


def test_a_list_of_what_to_ignore_that_is_a_pipe_is_not_waited_for(
    repository: Repository, worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(caches, "_PATIENCE", dt.timedelta(milliseconds=200))
    os.mkfifo(Path(worktree.path) / ".gitignore")
    assert left_out(repository, Path(worktree.path)) == set()
