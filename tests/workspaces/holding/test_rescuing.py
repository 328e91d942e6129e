from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.workspaces.remote import WHO, commit, git
from workspaces import worktrees
from workspaces.holding import rescuing
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(worktree: Worktree) -> Path:
    return Path(worktree.path)


@pytest.fixture
def admin(repository: Repository, place: Path) -> Path:
    found = worktrees.registration(repository, place)
    assert found is not None
    return found


def rescue(repository: Repository, admin: Path) -> list[str]:
    return rescuing.rescue(repository, admin, prefix="acw/rescued-1")


def kept(repository: Repository) -> set[str]:
    """The commits that branches lead to."""
    return set(git("rev-list", "--branches", cwd=repository.path).split())


def beside(place: Path) -> str:
    """A commit that no reference leads to."""
    return git("commit-tree", "-m", "beside", "HEAD^{tree}", cwd=place)


def test_only_what_no_branch_leads_to_is_rescued(
    repository: Repository, place: Path, admin: Path
):
    git("checkout", "--quiet", "-b", "another", cwd=place)
    commit(place)
    assert rescue(repository, admin) == []
    (admin / "logs" / "HEAD").write_bytes(b"no log\n" + b"\xff" * 50)
    (admin / "ORIG_HEAD").write_text("0" * 40)
    (admin / "notes").write_text(f"{'1' * 40} is not there, {'2' * 64} is no commit")
    assert rescue(repository, admin) == []


def test_what_head_was_at_is_rescued_once(
    repository: Repository, place: Path, admin: Path
):
    git("checkout", "--quiet", "--detach", cwd=place)
    commit(place, "early")
    late = commit(place, "late")
    git("checkout", "--quiet", "acw/work", cwd=place)
    assert rescue(repository, admin) == [f"acw/rescued-1-{late[:12]}"]
    assert late in kept(repository)
    assert rescue(repository, admin) == []


def test_what_a_rebase_has_stashed_is_rescued(
    repository: Repository, place: Path, admin: Path
):
    theirs = commit(place, "both", "theirs\n")
    git("reset", "--quiet", "--hard", "HEAD~1", cwd=place)
    commit(place, "both", "ours\n")
    (place / "README").write_text("in no commit\n")
    rebase = ["git", *WHO, "rebase", "--autostash", theirs]
    assert subprocess.run(rebase, cwd=place, capture_output=True).returncode == 1
    stashed = (admin / "rebase-merge" / "autostash").read_text().strip()
    assert rescue(repository, admin)
    assert {stashed, theirs} <= kept(repository)


def test_what_is_merged_and_references_of_its_own_are_rescued(
    repository: Repository, place: Path, admin: Path
):
    merged = commit(place, "merged")
    git("reset", "--quiet", "--hard", "HEAD~1", cwd=place)
    commit(place, "ours")
    git("merge", "--quiet", "--no-commit", merged, cwd=place)
    # As after `git reflog expire`.
    (admin / "logs" / "HEAD").unlink()
    (admin / "ORIG_HEAD").unlink()
    mine = beside(place)
    git("update-ref", "refs/worktree/mine", mine, cwd=place)
    assert len(rescue(repository, admin)) == 2
    assert {merged, mine} <= kept(repository)


def test_what_was_fetched_takes_no_room_from_what_was_made(
    repository: Repository,
    place: Path,
    admin: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(rescuing, "_RESCUED_MOST", 2)
    made = commit(place, "made")
    git("reset", "--quiet", "--hard", "HEAD~1", cwd=place)
    fetched = [
        git("commit-tree", "-m", name, "HEAD^{tree}", cwd=place) for name in "abc"
    ]
    (admin / "FETCH_HEAD").write_text("".join(f"{one}\t\tx\n" for one in fetched))
    assert made in {*git("rev-parse", *rescue(repository, admin), cwd=place).split()}


def test_what_a_tag_leads_to_is_kept_already(
    repository: Repository, place: Path, admin: Path
):
    tagged = beside(place)
    git("tag", "v1", tagged, cwd=place)
    (admin / "FETCH_HEAD").write_text(f"{tagged}\t\ttag 'v1' of elsewhere\n")
    assert rescue(repository, admin) == []


def test_what_is_a_submodules_is_not_looked_for(
    repository: Repository, place: Path, admin: Path
):
    (admin / "modules" / "sub").mkdir(parents=True)
    (admin / "modules" / "sub" / "HEAD").write_text(beside(place))
    assert rescue(repository, admin) == []
