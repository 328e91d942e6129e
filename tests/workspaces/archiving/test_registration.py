from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.workspaces.archiving import zoo
from tests.workspaces.remote import commit, git
from workspaces.archiving import registration
from workspaces.archiving.reading import Top
from workspaces.archiving.registration import Head
from workspaces.exceptions import ArchiveTooLarge, NotArchivable
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def head(repository: Repository, admin: Path) -> Head:
    with Top(admin) as top:
        return registration.head(repository, top, registration.read(top))


def test_where_head_is(repository: Repository, path: Path, admin: Path):
    at = git("rev-parse", "HEAD", cwd=path)
    assert head(repository, admin) == Head("refs/heads/acw/work", at)
    git("checkout", "--quiet", "--orphan", "begun", cwd=path)
    assert head(repository, admin) == Head("refs/heads/begun", "")
    git("checkout", "--quiet", "--detach", "--force", at, cwd=path)
    assert head(repository, admin) == Head("", at)
    (admin / "HEAD").unlink()
    (admin / "HEAD").symlink_to("refs/heads/acw/work")
    assert head(repository, admin) == Head("refs/heads/acw/work", at)


@pytest.mark.parametrize(
    "text",
    [
        *("", "nonsense", "ref: ../outside", "ref: HEAD", "0"),
        *(f"ref: refs/heads/{name}" for name in ("a\0b", "a" * 256, "a\nb", "a.lock")),
    ],
)
def test_a_head_that_says_nothing_is_refused(
    repository: Repository, admin: Path, text: str
):
    (admin / "HEAD").write_text(text)
    with pytest.raises(NotArchivable, match="neither a branch nor a commit"):
        head(repository, admin)


@pytest.mark.parametrize("text", ["1" * 40, "nonsense", ""])
def test_a_branch_whose_commit_cannot_be_read_is_no_branch_without_one(
    repository: Repository, admin: Path, text: str
):
    (repository.path / "refs" / "heads" / "acw" / "work").write_text(f"{text}\n")
    with pytest.raises(NotArchivable, match=r"its branch acw/work names (1{40}|not)"):
        head(repository, admin)


@pytest.mark.parametrize(
    ("note", "text", "found"),
    [
        ("rebase-merge/head-name", "refs/heads/acw/work\n", True),
        ("rebase-apply/head-name", "refs/heads/acw/work\n", True),
        ("BISECT_START", "acw/work\n", True),
        ("rebase-merge/head-name", "detached HEAD\n", False),
        ("BISECT_START", "1" * 40, False),
        ("BISECT_START", "acw/work..origin/main", False),
        ("BISECT_START", "", False),
        ("BISECT_START", "acw/work\0", False),
        ("BISECT_START", "a" * 4000, False),
        ("rebase-merge/head-name", "refs/heads/acw/work\0", False),
    ],
)
def test_what_is_in_progress_notes_the_branch_that_it_comes_back_to(
    repository: Repository, admin: Path, note: str, text: str, found: bool
):
    (admin / note).parent.mkdir(exist_ok=True)
    (admin / note).write_text(text)
    at = repository.local_branch("acw/work")
    assert at is not None
    with Top(admin) as top:
        back = registration.comes_back_to(repository, top, registration.read(top))
    assert back == (Head("refs/heads/acw/work", at) if found else Head("", ""))


def test_a_head_that_is_a_pipe_is_not_waited_for(repository: Repository, admin: Path):
    (admin / "HEAD").unlink()
    os.mkfifo(admin / "HEAD")
    with pytest.raises(NotArchivable):
        head(repository, admin)


def test_locks_and_what_is_made_anew_are_no_part_of_it(admin: Path):
    submodule = admin / "modules" / "vendor" / "poetry.lock"
    submodule.mkdir(parents=True)
    for file in ("index.lock", "HEAD.lock", "mine", submodule / "HEAD"):
        (admin / file).touch()
    with Top(admin) as top:
        found = {entry.path for entry in registration.read(top).entries}
    assert {b"HEAD", b"index", b"mine", b"logs/HEAD"} <= found
    assert b"modules/vendor/poetry.lock/HEAD" in found
    assert found.isdisjoint(
        {b"index.lock", b"HEAD.lock", b"gitdir", b"commondir", b"locked"}
    )


def test_commits_are_found_in_its_logs_and_in_its_branch_and_its_stashes(
    repository: Repository, path: Path, admin: Path
):
    amended_away = commit(path)
    git("commit", "--quiet", "--amend", "--message", "better", cwd=path)
    stashed = {}
    for branch in ("acw/work", "other"):
        git("checkout", "--quiet", "-B", branch, cwd=path)
        (path / "README").write_text(branch)
        git("stash", "--quiet", cwd=path)
        stashed[branch] = git("rev-parse", "refs/stash", cwd=path)
    with Top(admin) as top:
        named = registration.named_objects(top, registration.read(top))
    assert amended_away in named
    assert "0" * 40 not in named
    assert amended_away in registration.branch_log(repository, "refs/heads/acw/work")
    assert registration.branch_log(repository, "refs/heads/none") == set()
    for branch, name in stashed.items():
        assert registration.stashes(repository, f"refs/heads/{branch}") == {name}
    assert registration.stashes(repository, "") == set()


def test_one_that_is_reached_through_a_link_is_none(
    repository: Repository, path: Path, admin: Path, tmp_path: Path
):
    (repository.path / "worktrees").rename(tmp_path / "moved")
    (repository.path / "worktrees").symlink_to(tmp_path / "moved")
    with pytest.raises(NotArchivable, match="symbolic link"):
        registration.find(repository, path)


@pytest.mark.parametrize(
    "log", ["worktrees/{name}/logs/HEAD", "logs/refs/heads/acw/work"]
)
def test_a_log_that_is_too_long_to_look_through_keeps_the_worktree(
    repository: Repository,
    worktree: Worktree,
    monkeypatch: pytest.MonkeyPatch,
    log: str,
):
    name = Path(worktree.path).name
    monkeypatch.setattr(registration, "_TEXT_MOST", 1000)
    zoo.archive(repository, worktree)
    with (repository.path / log.format(name=name)).open("a") as file:
        file.write("x" * 1000)
    with pytest.raises(ArchiveTooLarge, match="1000 are looked through"):
        zoo.archive(repository, worktree)
