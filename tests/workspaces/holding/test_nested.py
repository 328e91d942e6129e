from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.archiving import zoo
from tests.workspaces.conftest import make_idle
from tests.workspaces.remote import commit, git
from workspaces import prune
from workspaces.archiving import restoring
from workspaces.holding import aside, nested
from workspaces.models import Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def inner(worktree: Worktree, path: Path) -> Path:
    """One that an agent has made within its own, with a commit on no branch and what is only staged."""
    inner = path / ".trees" / "inner"
    git("worktree", "add", "--quiet", "--detach", str(inner), cwd=path)
    commit(inner, "deep")
    (inner / "staged").write_text("only staged")
    git("add", "staged", cwd=inner)
    (inner / "staged").unlink()
    make_idle(worktree, days=31)
    return inner


def forget(repository: Repository) -> None:
    git("worktree", "prune", "--expire=now", cwd=repository.path)
    zoo.clean_out(repository)


def test_one_within_a_pruned_worktree_comes_back_with_its_commits_and_index(
    repository: Repository, worktree: Worktree, path: Path, inner: Path
):
    before = zoo.status(inner)
    head = git("rev-parse", "HEAD", cwd=inner)
    assert prune.prune_worktree(worktree.pk) == prune.Outcome.PRUNED
    forget(repository)
    restoring.restore(worktree.pk, actor="somebody")
    assert zoo.status(inner) == before
    assert git("rev-parse", "HEAD", cwd=inner) == head
    assert git("show", ":staged", cwd=inner) == "only staged"
    # As its agent is used to.
    git("worktree", "remove", "--force", str(inner), cwd=path)


def test_its_commits_are_in_the_archive_also_without_its_registration(
    repository: Repository, worktree: Worktree, path: Path, inner: Path
):
    head, blob = (git("rev-parse", what, cwd=inner) for what in ("HEAD", ":staged"))
    assert prune.prune_worktree(worktree.pk) == prune.Outcome.PRUNED
    git("worktree", "remove", "-f", "-f", str(inner), cwd=repository.path)
    zoo.clean_out(repository)
    restoring.restore(worktree.pk, actor="somebody")
    assert git("cat-file", "-t", head, cwd=path) == "commit"
    assert git("show", blob, cwd=path) == "only staged"


def test_a_worktree_that_is_not_pruned_after_all_has_them_as_they_were(
    repository: Repository, worktree: Worktree, path: Path, inner: Path
):
    (path / ".git").write_text("gitdir: /proc\n")
    make_idle(worktree, days=31)
    assert prune.prune_worktree(worktree.pk) == prune.Outcome.BLOCKED
    (found,) = nested.within(repository, path)
    assert (found.path, found.lock_reason) == (inner, "")


def test_one_that_somebody_has_locked_stays_so(
    repository: Repository, path: Path, inner: Path
):
    git("worktree", "lock", "--reason", "mine", str(inner), cwd=path)
    nested.lock(repository, path)
    nested.unlock(repository, path)
    (found,) = nested.within(repository, path)
    assert found.lock_reason == "mine"


def test_git_finds_one_within_what_was_put_aside(
    repository: Repository, path: Path, inner: Path
):
    moved = aside.put_aside(repository, path)
    (found,) = nested.within(repository, moved)
    assert found.path == moved / ".trees" / "inner"
    forget(repository)
    assert git("show", ":staged", cwd=found.path) == "only staged"
