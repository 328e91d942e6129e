from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.archiving import zoo
from tests.workspaces.factories import WorktreeFactory
from tests.workspaces.remote import commit, git
from workspaces.archiving import branches
from workspaces.archiving.registration import Head
from workspaces.models import Workspace, Worktree, WorktreeArchive
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

BRANCH = "refs/heads/acw/work"


@pytest.fixture
def archive(repository: Repository, worktree: Worktree) -> WorktreeArchive:
    made = zoo.archive(repository, worktree)
    zoo.remove(repository, worktree)
    return made


@pytest.fixture
def head(repository: Repository, archive: WorktreeArchive) -> Head:
    return Head(BRANCH, repository.local_branch("acw/work") or "")


def own(archive: WorktreeArchive) -> str:
    return f"acw/restored-{archive.worktree_id}"


def test_a_branch_that_is_where_it_was_is_taken_up(
    repository: Repository, archive: WorktreeArchive, head: Head
):
    placed = branches.place(repository, archive, head)
    assert (placed.head, placed.branch, placed.note) == (
        f"ref: {BRANCH}\n",
        "acw/work",
        "",
    )


def test_one_without_a_commit_yet_stays_so(
    repository: Repository, archive: WorktreeArchive
):
    placed = branches.place(repository, archive, Head("refs/heads/begun", ""))
    assert (placed.head, placed.branch) == ("ref: refs/heads/begun\n", "acw/work")
    git("branch", "begun", "origin/main", cwd=repository.path)
    placed = branches.place(repository, archive, Head("refs/heads/begun", ""))
    assert placed.head == f"ref: refs/heads/{own(archive)}\n"
    assert repository.local_branch(own(archive)) is None


def test_a_branch_whose_name_cannot_be_had_again_gets_another(
    repository: Repository, archive: WorktreeArchive, head: Head
):
    git("branch", "--delete", "--force", "acw/work", cwd=repository.path)
    git("branch", "acw/work/below", "origin/main", cwd=repository.path)
    placed = branches.place(repository, archive, head)
    assert placed.branch == own(archive)
    assert "cannot be made again" in placed.note
    assert repository.local_branch(own(archive)) == head.commit


@pytest.mark.parametrize("note", ["HEAD", "rebase-merge/head-name", "BISECT_START"])
def test_a_branch_that_another_worktree_comes_back_to_is_left_alone(
    repository: Repository, archive: WorktreeArchive, head: Head, note: str
):
    other = repository.path / "worktrees" / "other" / note
    other.parent.mkdir(parents=True)
    other.write_text(
        {"HEAD": f"ref: {BRANCH}", "BISECT_START": "acw/work"}.get(note, BRANCH)
    )
    placed = branches.place(repository, archive, head)
    assert placed.head == f"ref: refs/heads/{own(archive)}\n"
    assert "another worktree has the branch" in placed.note


def test_the_branch_that_a_rebase_comes_back_to_is_made_again_where_it_is_gone(
    repository: Repository, archive: WorktreeArchive, head: Head
):
    git("branch", "--delete", "--force", "acw/work", cwd=repository.path)
    detached = Head("", head.commit)
    placed = branches.place(repository, archive, detached, back=head)
    assert (placed.head, placed.note) == (f"{head.commit}\n", "")
    assert repository.local_branch("acw/work") == head.commit


@pytest.mark.parametrize("how", ["moved", "elsewhere"])
def test_the_branch_that_a_rebase_comes_back_to_is_left_alone_where_it_has_gone_on(
    repository: Repository, archive: WorktreeArchive, head: Head, how: str
):
    if how == "moved":
        tree = f"{head.commit}^{{tree}}"
        moved = git("commit-tree", "-m", "on", tree, cwd=repository.path)
        git("update-ref", head.branch, moved, cwd=repository.path)
    else:
        (repository.path / "worktrees" / "other").mkdir(parents=True)
        (repository.path / "worktrees" / "other" / "HEAD").write_text(f"ref: {BRANCH}")
    before = repository.local_branch("acw/work")
    placed = branches.place(repository, archive, Head("", head.commit), back=head)
    assert placed.head == f"{head.commit}\n"
    assert "what is in progress comes back to it" in placed.note
    assert repository.local_branch("acw/work") == before


def test_a_registration_that_is_broken_keeps_no_other_worktree_from_its_branch(
    repository: Repository, archive: WorktreeArchive, head: Head
):
    other = repository.path / "worktrees" / "other"
    (other / "BISECT_START").mkdir(parents=True)
    (other / "HEAD").symlink_to("refs/heads/another")
    assert branches.place(repository, archive, head).head == f"ref: {BRANCH}\n"
    (other / "HEAD").unlink()
    (other / "HEAD").symlink_to(BRANCH)
    assert "another worktree has" in branches.place(repository, archive, head).note


def test_a_branch_that_another_row_has_is_left_to_it(
    repository: Repository, archive: WorktreeArchive, head: Head, workspace: Workspace
):
    WorktreeFactory(workspace=workspace, branch="acw/work")
    assert branches.place(repository, archive, head).branch == own(archive)
    detached = branches.place(repository, archive, Head("", head.commit))
    assert (detached.head, detached.branch) == (f"{head.commit}\n", own(archive))


def test_a_name_that_is_taken_at_another_commit_is_not_taken_again(
    repository: Repository,
    archive: WorktreeArchive,
    head: Head,
    workspace: Workspace,
    checkout: Path,
):
    WorktreeFactory(workspace=workspace, branch="acw/work")
    other = commit(checkout)
    git(
        "fetch",
        "--quiet",
        str(checkout),
        f"HEAD:refs/heads/{own(archive)}",
        cwd=repository.path,
    )
    placed = branches.place(repository, archive, head)
    assert placed.branch == f"{own(archive)}-2"
    assert repository.local_branch(own(archive)) == other
