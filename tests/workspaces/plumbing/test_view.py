from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.workspaces.remote import commit, git
from tests.workspaces.witness import Tripwire
from workspaces.exceptions import GitFailed
from workspaces.plumbing import view
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def configure(repository: Repository, key: str, value: str) -> None:
    git("config", "--", key, value, cwd=repository.path)


def write_info(repository: Repository, name: str, text: str) -> None:
    (repository.path / "info").mkdir(exist_ok=True)
    (repository.path / "info" / name).write_text(text)


def status(repository: Repository, admin: Path, path: Path) -> bytes:
    with view.opened(repository.path, admin, path) as seen:
        return seen.run(["status", "--porcelain", "-z"], stop=None).stdout


def test_it_shows_what_the_agents_git_shows(
    repository: Repository, admin: Path, path: Path
):
    commit(path, "work.txt")
    (path / "work.txt").write_text("changed\n")
    (path / "staged").touch()
    git("add", "staged", cwd=path)
    (path / "untracked").touch()
    write_info(repository, "exclude", "untracked\n")
    git("pack-refs", "--all", cwd=repository.path)
    assert status(repository, admin, path) == b"A  staged\0 M work.txt\0"


@pytest.mark.parametrize("what", ["clean", "smudge", "process"])
def test_a_filter_that_is_configured_while_it_is_open_is_not_run(
    repository: Repository, admin: Path, path: Path, tmp_path: Path, what: str
):
    wire = Tripwire(tmp_path)
    with view.opened(repository.path, admin, path) as seen:
        configure(repository, f"filter.late.{what}", str(wire.program))
        write_info(repository, "attributes", "* filter=late\n")
        (path / "README").write_text("other\n")
        seen.run(["status", "--porcelain"], stop=None)
        seen.run(["checkout-index", "--all", "--force"], stop=None)
    assert (path / "README").read_text() == "hello\n"
    assert wire.fired == ""
    # It would have run without.
    (path / "README").write_text("other\n")
    git("checkout-index", "--all", "--force", cwd=path)
    git("-c", "core.checkStat=default", "add", "--renormalize", ".", cwd=path)
    assert wire.fired


def test_it_says_whether_there_are_any(repository: Repository, admin: Path, path: Path):
    configure(repository, "filter.lfs.required", "true")
    with view.opened(repository.path, admin, path) as seen:
        assert not seen.has_filters
    configure(repository, "filter.a=b.c.clean", "cat")
    with view.opened(repository.path, admin, path) as seen:
        assert seen.has_filters


@pytest.mark.parametrize("where", ["config", "config.worktree"])
def test_how_files_are_written_is_as_the_clone_or_the_worktree_has_it(
    repository: Repository, admin: Path, path: Path, where: str
):
    configure(repository, "extensions.worktreeConfig", "true")
    directory = repository.path if where == "config" else admin
    git("config", "--file", str(directory / where), "core.autocrlf", "true")
    with view.opened(repository.path, admin, path) as seen:
        (path / "README").unlink()
        seen.run(["checkout-index", "--index", "--all"], stop=None)
    assert (path / "README").read_bytes() == b"hello\r\n"
    assert status(repository, admin, path) == b""


def test_a_key_without_a_value_is_true(repository: Repository, admin: Path, path: Path):
    with (repository.path / "config").open("a") as config:
        config.write("[core]\n\tautocrlf\n")
    with view.opened(repository.path, admin, path) as seen:
        (path / "README").unlink()
        seen.run(["checkout-index", "--index", "--all"], stop=None)
    assert (path / "README").read_bytes() == b"hello\r\n"


def test_what_is_left_out_of_a_sparse_worktree_is_not_missing(
    repository: Repository, admin: Path, path: Path
):
    commit(path, "work.txt")
    git("sparse-checkout", "set", "--no-cone", "/work.txt", cwd=path)
    assert not (path / "README").exists()
    assert status(repository, admin, path) == b""
    with view.opened(repository.path, admin, path) as seen:
        seen.run(["read-tree", "--reset", "-u", "HEAD"], stop=None)
    assert not (path / "README").exists()


def test_a_split_index_is_read(repository: Repository, admin: Path, path: Path):
    git("update-index", "--split-index", cwd=path)
    (path / "README").unlink()
    assert status(repository, admin, path) == b" D README\0"


def test_nothing_is_left_of_it(
    repository: Repository,
    admin: Path,
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with view.opened(repository.path, admin, path) as seen:
        assert len([*(tmp_path / "temporary").iterdir()]) == 1
        with pytest.raises(GitFailed):
            seen.run(["read-tree", "nothing"], stop=None)
    assert [*(tmp_path / "temporary").iterdir()] == []
    assert (repository.path / "refs").is_dir()
