"""Which commits count as work that would be lost."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.workspaces.remote import Remote, commit, git
from workspaces.models import Worktree
from workspaces.pruning import contents, inspection
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(worktree: Worktree) -> Path:
    return Path(worktree.path)


def said(repository: Repository, path: Path, at: Path | None = None) -> list[str]:
    return contents.look(repository, path, at=at, measure=False).in_words()


def work(repository: Repository, path: Path, at: Path | None = None) -> str:
    return "; ".join(said(repository, path, at=at))


def test_commits_that_are_not_pushed_count(
    repository: Repository, path: Path, remote: Remote
):
    commit(path)
    told = work(repository, path)
    assert told.startswith("1 commit that is not pushed (")
    git("push", "--quiet", "origin", "HEAD:refs/heads/topic", cwd=path)
    repository.fetch(remote.url, timeout=None, stop=None)
    assert work(repository, path) == ""


def test_what_was_pushed_and_then_dropped_by_the_remote_counts(
    repository: Repository, path: Path, remote: Remote
):
    commit(path)
    git("push", "--quiet", "origin", "HEAD:refs/heads/topic", cwd=path)
    git("update-ref", "-d", "refs/heads/topic", cwd=remote.path)
    repository.fetch(remote.url, timeout=None, stop=None)
    assert "1 commit that is not pushed" in work(repository, path)


def test_however_many_branches_there_are_their_logs_are_read_at_once(
    repository: Repository, path: Path, started: list[Sequence[str]]
):
    """What was amended is in the log of its branch, for which those of all are looked through."""
    commit(path)
    git("commit", "--quiet", "--amend", "--message", "amended", cwd=path)

    def processes() -> int:
        started.clear()
        assert "on no branch" not in work(repository, path)
        return len(started)

    few = processes()
    for number in range(5):
        git("branch", f"topic-{number}", cwd=path)
    (repository.path / "logs/refs/heads/topic-0").unlink()
    assert processes() == few


def test_a_commit_on_a_detached_head_counts(repository: Repository, path: Path):
    git("checkout", "--quiet", "--detach", cwd=path)
    commit(path)
    told = work(repository, path)
    assert "1 commit that is not pushed" in told
    assert "1 commit on no branch" in told


def test_a_commit_that_head_has_left_counts(repository: Repository, path: Path):
    git("checkout", "--quiet", "--detach", cwd=path)
    commit(path)
    git("checkout", "--quiet", "acw/work", cwd=path)
    assert work(repository, path).startswith("1 commit on no branch (")


def test_a_commit_that_head_left_long_ago_counts(
    repository: Repository, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(inspection, "COMMITS_MOST", 2)
    git("checkout", "--quiet", "--detach", cwd=path)
    lost = commit(path)
    git("checkout", "--quiet", "acw/work", cwd=path)
    for number in range(3):
        commit(path, f"{number}")
    told = said(repository, path)
    assert told[-1].startswith("1 commit on no branch (")
    assert lost[:7] in told[-1]


def test_a_commit_found_twice_is_counted_once(
    repository: Repository, path: Path, monkeypatch: pytest.MonkeyPatch
):
    git("checkout", "--quiet", "--detach", cwd=path)
    first, second = commit(path, "a"), commit(path, "b")
    git("reset", "--quiet", "--hard", first, cwd=path)
    git("checkout", "--quiet", "acw/work", cwd=path)
    monkeypatch.setattr(inspection, "COMMITS_MOST", 2)
    (told,) = said(repository, path)
    assert told.startswith("2 or more commits on no branch (")
    assert second[:7] in told


def test_more_commits_than_are_listed_are_said_to_be_more(
    repository: Repository, path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(inspection, "COMMITS_MOST", 2)
    for name in ("a", "b", "c"):
        commit(path, name)
    told = work(repository, path)
    assert told.startswith("2 or more commits that are not pushed (")


def test_more_moves_of_head_than_can_be_read_count(
    repository: Repository, path: Path, monkeypatch: pytest.MonkeyPatch
):
    shutil.rmtree(path)
    monkeypatch.setattr(inspection, "_LOG_MOST", 3)
    assert work(repository, path) == "more moves of HEAD than can be checked"


def test_an_amended_commit_is_in_the_log_of_its_branch_and_does_not_count(
    repository: Repository, path: Path, remote: Remote
):
    commit(path)
    git("commit", "--quiet", "--amend", "-m", "better", cwd=path)
    git("push", "--quiet", "origin", "HEAD:refs/heads/topic", cwd=path)
    repository.fetch(remote.url, timeout=None, stop=None)
    assert work(repository, path) == ""


def test_an_unborn_branch_has_no_commits_to_lose(repository: Repository, path: Path):
    git("checkout", "--quiet", "--orphan", "fresh", cwd=path)
    git("rm", "--quiet", "-r", "--cached", ".", cwd=path)
    (path / "README").unlink()
    assert work(repository, path) == ""


def test_a_stash_of_its_branch_counts(repository: Repository, path: Path):
    (path / "README").write_text("changed\n")
    git("stash", "push", "--quiet", "-m", "later", cwd=path)
    assert work(repository, path) == "1 stash (On acw/work: later)"


def test_a_stash_of_the_branch_that_a_bisection_comes_back_to_counts(
    repository: Repository, path: Path
):
    (path / "README").write_text("stashed\n")
    git("stash", "push", "--quiet", "-m", "later", cwd=path)
    git("bisect", "start", cwd=path)
    git("checkout", "--quiet", "--detach", cwd=path)
    assert "1 stash (On acw/work: later)" in work(repository, path)


def test_a_stash_of_another_branch_does_not(
    repository: Repository, path: Path, remote: Remote
):
    git("checkout", "--quiet", "-b", "other", cwd=path)
    (path / "README").write_text("changed\n")
    git("stash", "push", "--quiet", cwd=path)
    git("checkout", "--quiet", "acw/work", cwd=path)
    assert work(repository, path) == ""


def test_a_directory_that_is_gone_may_leave_commits_on_no_branch(
    repository: Repository, path: Path
):
    git("checkout", "--quiet", "--detach", cwd=path)
    commit(path)
    shutil.rmtree(path)
    assert work(repository, path).startswith("1 commit on no branch (")
