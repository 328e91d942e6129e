from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.workspaces.remote import Remote, commit, git
from workspaces import worktrees
from workspaces.models import Worktree
from workspaces.pruning import contents, inspection
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def everything_in(path: Path) -> None:
    """Put into a worktree one of each kind of work, and a cache."""
    commit(path, ".gitignore", ".env\nnode_modules/\n")
    (path / ".env").write_text("KEY=1\n")
    (path / ".env").chmod(0o600)
    (path / "node_modules").mkdir()
    (path / "node_modules" / "cache").write_bytes(b"x" * 10_000)
    (path / "README").write_text("changed\n")
    (path / "staged").write_text("staged\n")
    git("add", "staged", cwd=path)
    (path / "untracked").write_text("untracked\n")
    (path / "nested").mkdir()
    git("init", "--quiet", str(path / "nested"))
    commit(path / "nested", "inner")


@pytest.fixture
def path(worktree: Worktree) -> Path:
    return Path(worktree.path)


def test_each_kind_is_told_apart_and_counted(repository: Repository, path: Path):
    everything_in(path)
    found = contents.look(repository, path)
    assert found.commits.count == 1
    assert found.commits.names[0].endswith(" .gitignore")
    assert set(found.changed.names) == {"README", "staged"}
    assert set(found.untracked.names) == {"untracked", "nested/"}
    assert found.ignored.names == (".env",)
    assert found.recreatable.names == ("node_modules/",)
    assert not found.is_saved
    assert found.size_bytes is not None
    assert found.recreatable_bytes is not None
    assert found.size_bytes > found.recreatable_bytes >= 10_000
    said = found.size_in_words()
    assert "can be made again (node_modules/)" in said


def test_a_fresh_worktree_is_saved(repository: Repository, path: Path):
    found = contents.look(repository, path, measure=False)
    assert found.is_saved
    assert found.size_in_words() == ""


def test_titles_of_commits_are_shown(repository: Repository, path: Path):
    commit(path, "one")
    git("commit", "--quiet", "--allow-empty", "-m", "Mend the login", cwd=path)
    (said,) = contents.look(repository, path).in_words()
    assert said.startswith("2 commits that are not pushed (")
    assert " Mend the login, " in said


def test_a_commit_that_the_remote_took_over_as_another_is_said_to_be_there(
    repository: Repository, path: Path, remote: Remote
):
    commit(path, "feature", "the same\n")
    remote.push("first")
    remote.push("feature", "the same\n")
    repository.fetch(remote.url, timeout=None, stop=None)
    found = contents.look(repository, path)
    assert (found.commits.count, found.merged) == (1, 1)
    assert "of which the remote has 1 in other commits" in found.in_words()[0]
    # It is still nowhere else by its name, so nothing depends on that.
    assert not found.is_saved


def test_what_is_shown_is_bounded_printable_and_without_secrets(
    repository: Repository, path: Path
):
    for number in range(50):
        (path / f"file{number}").touch()
    (path / "a\x1b[2Jb\nc").touch()
    git(
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "pushed to https://ada:hunter22secret@git.example/x",
        cwd=path,
    )
    data = contents.look(repository, path).as_data()
    assert data["untracked"]["count"] == 51
    assert len(data["untracked"]["names"]) == contents.NAMED_MOST
    text = json.dumps(data, ensure_ascii=False)
    assert text.isprintable()
    assert "hunter22secret" not in text
    assert "git.example" in text
    assert len(text) < 10_000


def test_what_cannot_be_listed_is_said(
    repository: Repository, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(inspection, "_LISTING_MOST", 3)
    (path / "new").touch()
    found = contents.look(repository, path)
    assert found.unchecked == (
        "more changed files than can be listed",
        "more files than can be listed",
    )
    assert not found.is_saved


def test_a_directory_that_git_does_not_know_cannot_be_checked_and_has_a_size(
    repository: Repository, path: Path
):
    (path / ".git").unlink()
    found = contents.look(repository, path)
    assert "cannot be checked" in found.in_words()[0]
    assert found.size_bytes


def test_looking_writes_nothing(repository: Repository, path: Path):
    everything_in(path)
    os.utime(path / "README", (1, 1))

    def disk() -> str:
        listed = ["find", str(repository.directory), "-printf", "%p %T@ %C@ %i %s\n"]
        done = subprocess.run(listed, capture_output=True, text=True, check=True)
        return "\n".join(sorted(done.stdout.splitlines()))

    before = disk()
    contents.look(repository, path)
    assert disk() == before


def test_branches_of_the_clone_that_are_not_pushed_are_named(
    repository: Repository, path: Path
):
    assert contents.unpushed_branches(repository) == []
    commit(path)
    assert contents.unpushed_branches(repository) == [
        "commits that are not pushed on refs/heads/acw/work"
    ]


def test_neither_directory_nor_registration_is_nothing(
    repository: Repository, path: Path
):
    worktrees.discard(repository, path)
    assert contents.look(repository, path) == contents.Contents()
