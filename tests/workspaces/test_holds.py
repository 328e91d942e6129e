from __future__ import annotations

import datetime as dt
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from tests.workspaces.conftest import make_idle
from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.remote import Remote, commit, git
from workspaces import holds, worktrees
from workspaces.exceptions import (
    BranchInUse,
    CloneMissing,
    EmptyRepository,
    ForeignHold,
    GitError,
    GitStopped,
    InvalidName,
    OutsideDataDirectory,
    UnknownWorktree,
    WorktreeBusy,
    WorktreeError,
    WorktreeHeld,
    WorktreeNotHeld,
    WrongHost,
)
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db


def warned_and_blocked(worktree: Worktree) -> None:
    Worktree.objects.filter(pk=worktree.pk).update(
        prune_warning_at=timezone.now(),
        prune_blocked_at=timezone.now(),
        prune_blocked_reason="x",
    )


def database_now() -> dt.datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        now: dt.datetime = cursor.fetchone()[0]
        return now


def test_a_new_worktree_is_made_held(workspace: Workspace):
    worktree = holds.acquire(workspace, holder="agent")
    assert worktree.held_by == worktree.last_held_by == "agent"
    assert worktree.held_since is not None
    assert worktree.branch.startswith("acw/")
    assert worktree.state == Worktree.State.READY
    assert git("branch", "--show-current", cwd=Path(worktree.path)) == worktree.branch


def test_each_holder_gets_one_of_its_own(workspace: Workspace):
    first = holds.acquire(workspace, holder="one")
    second = holds.acquire(workspace, holder="two")
    assert first.path != second.path
    assert first.branch != second.branch


def test_a_holder_gets_the_one_back_that_it_used_last(workspace: Workspace):
    one = holds.acquire(workspace, holder="agent")
    two = holds.acquire(workspace, holder="agent")
    for worktree in (two, one):
        holds.release(worktree.pk)
    assert holds.acquire(workspace, holder="agent") == one
    assert holds.acquire(workspace, holder="agent") == two


def test_what_another_left_is_not_given_away(workspace: Workspace):
    first = holds.acquire(workspace, holder="one")
    holds.release(first.pk)
    assert holds.acquire(workspace, holder="two") != first


def test_the_worktree_of_a_branch_is_given_to_whoever_asks_for_it(
    workspace: Workspace, worktree: Worktree
):
    commit(Path(worktree.path))
    taken = holds.acquire(workspace, branch="acw/work", holder="other")
    assert taken == worktree
    assert (Path(taken.path) / "work.txt").exists()


def test_both_directions_count_as_use(workspace: Workspace, worktree: Worktree):
    def used(verb: Callable[[], Worktree]) -> None:
        make_idle(worktree, days=28)
        warned_and_blocked(worktree)
        before = database_now()
        after = verb()
        assert before <= after.last_used_at <= database_now()
        assert after.prune_warning_at is None
        assert after.prune_blocked_at is None
        assert after.prune_blocked_reason == ""

    used(lambda: holds.acquire(workspace, branch="acw/work", holder="agent"))
    used(lambda: holds.release(worktree.pk))


@pytest.mark.parametrize("holder", ["agent", "other"])
def test_a_held_one_is_refused_also_to_its_holder(workspace: Workspace, holder: str):
    holds.acquire(workspace, branch="topic", holder="agent")
    with pytest.raises(WorktreeHeld, match=r"\(topic\) is held by 'agent' since 20"):
        holds.acquire(workspace, branch="topic", holder=holder)


def test_one_that_is_being_pruned_is_refused(workspace: Workspace, worktree: Worktree):
    Worktree.objects.update(state=Worktree.State.PRUNING)
    with pytest.raises(WorktreeBusy, match="try again later"):
        holds.acquire(workspace, branch="acw/work", holder="agent")


def test_a_branch_that_an_agent_has_switched_to_is_refused(
    workspace: Workspace, worktree: Worktree
):
    git("checkout", "--quiet", "-b", "elsewhere", cwd=Path(worktree.path))
    with pytest.raises(BranchInUse):
        holds.acquire(workspace, branch="elsewhere", holder="agent")
    assert Worktree.objects.count() == 1


@pytest.mark.parametrize("branch", ["-x", "a..b", "HEAD", ""])
def test_a_branch_that_cannot_be_is_refused(workspace: Workspace, branch: str):
    with pytest.raises(InvalidName):
        holds.acquire(workspace, branch=branch, holder="agent")


@pytest.mark.parametrize("holder", ["", " ", "a\nb", "x" * 201])
def test_a_holder_must_be_a_name(workspace: Workspace, holder: str):
    with pytest.raises(InvalidName, match="holder"):
        holds.acquire(workspace, holder=holder)


def test_an_empty_repository_has_nothing_to_check_out(
    workspace: Workspace, settings: Settings
):
    workspace.default_branch = ""
    with pytest.raises(EmptyRepository):
        holds.acquire(workspace, holder="agent")
    assert not Worktree.objects.exists()


def test_another_hosts_workspace_is_refused(workspace: Workspace, settings: Settings):
    settings.ACW_HOST = "elsewhere"
    with pytest.raises(WrongHost):
        holds.acquire(workspace, holder="agent")


def test_a_workspace_without_its_clone_is_refused():
    with pytest.raises(CloneMissing):
        holds.acquire(WorkspaceFactory(), holder="agent")


def test_one_that_cannot_be_made_leaves_neither_row_nor_branch(
    workspace: Workspace, repository: Repository
):
    with pytest.raises(GitStopped):
        holds.acquire(workspace, branch="topic", holder="agent", stop=lambda: True)
    assert not Worktree.objects.exists()
    assert repository.local_branch("topic") is None


def test_what_an_interrupted_creation_left_is_removed_by_the_next(
    workspace: Workspace, repository: Repository, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    left = holds.acquire(workspace, branch="topic", holder="agent")
    Worktree.objects.update(
        state=Worktree.State.CREATING,
        held_by=None,
        held_since=None,
        heartbeat_at=None,
        lease_expires_at=None,
    )
    (Path(left.path) / "README").unlink()  # half checked out
    again = holds.acquire(workspace, branch="topic", holder="agent")
    assert again.pk != left.pk
    assert not Path(left.path).exists()
    assert (Path(again.path) / "README").exists()
    assert "worktree.discarded" in caplog.messages


def test_one_that_cannot_even_be_removed_stays_known(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object, **__: object) -> None:
        raise GitError("worktree", "broke")

    def add(repository: Repository, path: Path, *_: object, **__: object) -> None:
        path.mkdir(parents=True)
        fail()

    monkeypatch.setattr(worktrees, "add", add)
    with pytest.raises(GitError, match="broke"):
        holds.acquire(workspace, holder="agent")
    assert Worktree.objects.get().state == Worktree.State.CREATING


def test_a_directory_that_is_gone_is_checked_out_again(
    workspace: Workspace, worktree: Worktree
):
    mine = commit(Path(worktree.path))
    shutil.rmtree(worktree.path)
    taken = holds.acquire(workspace, branch="acw/work", holder="agent")
    assert taken == worktree
    assert git("rev-parse", "HEAD", cwd=Path(taken.path)) == mine


def test_a_directory_that_is_gone_with_commits_on_no_branch_is_refused(
    workspace: Workspace, worktree: Worktree
):
    git("checkout", "--quiet", "--detach", cwd=Path(worktree.path))
    commit(Path(worktree.path))
    shutil.rmtree(worktree.path)
    with pytest.raises(WorktreeError, match="1 commit on no branch"):
        holds.acquire(workspace, branch="acw/work", holder="agent")
    worktree.refresh_from_db()
    assert worktree.held_by is None


def test_a_directory_swapped_for_a_link_is_refused_and_let_go(
    workspace: Workspace, worktree: Worktree, tmp_path: Path
):
    path = Path(worktree.path)
    path.rename(path.with_name("away"))
    path.symlink_to(tmp_path)
    with pytest.raises(OutsideDataDirectory):
        holds.acquire(workspace, branch="acw/work", holder="agent")
    worktree.refresh_from_db()
    assert worktree.held_by is None


def test_a_branch_of_the_remote_can_be_acquired(workspace: Workspace, remote: Remote):
    worktree = holds.acquire(workspace, branch="main", holder="agent")
    assert git("rev-parse", "HEAD", cwd=Path(worktree.path)) == git(
        "rev-parse", "main", cwd=remote.path
    )


def test_only_its_holder_is_let_go(workspace: Workspace):
    worktree = holds.acquire(workspace, holder="agent")
    with pytest.raises(ForeignHold, match="held by 'agent', not by 'other'"):
        holds.release(worktree.pk, holder="other")
    assert holds.release(worktree.pk, holder="agent").held_by is None


def test_what_is_not_held_cannot_be_released(worktree: Worktree):
    with pytest.raises(WorktreeNotHeld, match=f"worktree {worktree.pk} is not held"):
        holds.release(worktree.pk)


def test_what_is_not_there_cannot_be_released():
    with pytest.raises(UnknownWorktree, match="no worktree 12345"):
        holds.release(12345)


def held_since(worktree: Worktree) -> dt.datetime:
    assert worktree.held_since is not None
    return worktree.held_since


def test_a_hold_is_let_go_of_by_when_it_began(workspace: Workspace):
    worktree = holds.acquire(workspace, holder="agent")
    since = held_since(worktree)
    make_idle(worktree, days=28)
    warned_and_blocked(worktree)
    before = database_now()
    assert holds.let_go(worktree.pk, held_since=since)
    worktree.refresh_from_db()
    assert (worktree.held_by, worktree.held_since) == (None, None)
    assert worktree.last_held_by == "agent"
    assert worktree.last_used_at >= before
    assert (worktree.prune_warning_at, worktree.prune_blocked_at) == (None, None)
    assert not holds.let_go(worktree.pk, held_since=since)


def test_a_hold_is_passed_on_and_is_the_same_hold_still(workspace: Workspace):
    worktree = holds.acquire(workspace, holder="agent")
    other = holds.acquire(workspace, holder="agent")
    since = held_since(worktree)
    make_idle(worktree, days=28)
    before = database_now()
    assert holds.pass_on(worktree.pk, held_since=since, holder="next")
    for row in (worktree, other):
        row.refresh_from_db()
    assert (worktree.held_by, worktree.last_held_by) == ("next", "next")
    assert worktree.held_since == since
    assert worktree.last_used_at >= before
    assert other.held_by == "agent"
    assert holds.let_go(worktree.pk, held_since=since)


def test_a_later_hold_is_left_alone(workspace: Workspace):
    worktree = holds.acquire(workspace, branch="topic", holder="agent")
    since = held_since(worktree)
    holds.release(worktree.pk)
    assert not holds.pass_on(worktree.pk, held_since=since, holder="next")
    holds.acquire(workspace, branch="topic", holder="other")
    assert not holds.let_go(worktree.pk, held_since=since)
    assert not holds.pass_on(worktree.pk, held_since=since, holder="next")
    worktree.refresh_from_db()
    assert worktree.held_by == worktree.last_held_by == "other"


def test_there_is_nothing_to_let_go_of_where_there_is_no_worktree(db: None):
    now = timezone.now()
    assert not holds.let_go(12345, held_since=now)
    assert not holds.pass_on(12345, held_since=now, holder="next")
