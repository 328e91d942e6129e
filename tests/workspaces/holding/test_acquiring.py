from __future__ import annotations

import datetime as dt
import logging
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.utils import timezone
from pytest_django import Settings

from tests.workspaces.conftest import make_idle
from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.remote import Remote, commit, git
from workspaces import holds, paths, prune, worktrees
from workspaces.archiving import restoring
from workspaces.exceptions import (
    ArchiveDamaged,
    BranchInUse,
    CloneMissing,
    ConfigTampered,
    EmptyRepository,
    GitError,
    GitStopped,
    InvalidLease,
    InvalidName,
    NotCloned,
    OutsideDataDirectory,
    QuotaExceeded,
    RepositoryBusy,
    StaleHold,
    UnknownArchive,
    WorktreeHeld,
    WorktreeQuarantined,
    WrongHost,
)
from workspaces.git import run as run_git
from workspaces.holding import leases
from workspaces.models import Workspace, Worktree, WorktreeArchive
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


def test_acquiring_counts_as_use(workspace: Workspace, worktree: Worktree):
    make_idle(worktree, days=28)
    warned_and_blocked(worktree)
    before = database_now()
    after = holds.acquire(workspace, branch="acw/work", holder="agent")
    assert before <= after.last_used_at <= database_now()
    assert after.prune_warning_at is None
    assert after.prune_blocked_at is None
    assert after.prune_blocked_reason == ""


@pytest.mark.parametrize("holder", ["agent", "other"])
def test_a_held_one_is_refused_also_to_its_holder(workspace: Workspace, holder: str):
    holds.acquire(workspace, branch="topic", holder="agent")
    with pytest.raises(WorktreeHeld, match=r"\(topic\) is held by 'agent' since 20"):
        holds.acquire(workspace, branch="topic", holder=holder)


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


def test_another_name_of_a_branch_is_no_new_branch(
    workspace: Workspace, remote: Remote
):
    for name in ("origin/main", "refs/heads/main", "refs/remotes/origin/main"):
        with pytest.raises(InvalidName, match="one 'main'; give that"):
            holds.acquire(workspace, branch=name, holder="agent")
    assert not Worktree.objects.exists()
    made = holds.acquire(workspace, branch="origin/new", holder="agent")
    assert made.branch == "origin/new"


def test_a_branch_of_the_remote_can_be_acquired(workspace: Workspace, remote: Remote):
    worktree = holds.acquire(workspace, branch="main", holder="agent")
    assert git("rev-parse", "HEAD", cwd=Path(worktree.path)) == git(
        "rev-parse", "main", cwd=remote.path
    )


def lock_of(worktree: Worktree, repository: Repository) -> str:
    """Why git does not let anybody forget the worktree; "": it does."""
    admin = worktrees.registration(repository, Path(worktree.path))
    assert admin
    locked = admin / "locked"
    return locked.read_text().strip() if locked.exists() else ""


def test_a_held_one_is_there_and_locked_in_git_for_its_hold(
    workspace: Workspace, repository: Repository
):
    worktree = holds.acquire(workspace, branch="topic", holder="agent")
    assert lock_of(worktree, repository) == f"acw:{worktree.pk}:1"
    holds.release(worktree.pk)
    git("worktree", "unlock", worktree.path, cwd=repository.path)
    again = holds.acquire(workspace, branch="topic", holder="agent")
    assert lock_of(again, repository) == f"acw:{worktree.pk}:2"
    assert Path(again.path).is_dir()


def test_the_lock_is_not_written_through_a_link(
    workspace: Workspace,
    repository: Repository,
    worktree: Worktree,
    tmp_path: Path,
    admin: Path,
):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (admin / "locked").unlink()
    (admin / "locked").symlink_to(victim)
    again = holds.acquire(workspace, branch="acw/work", holder="agent")
    assert victim.read_text() == "precious"
    assert lock_of(again, repository) == f"acw:{worktree.pk}:2"


def test_a_lease_is_what_is_asked_for_or_what_the_setting_says(
    workspace: Workspace, settings: Settings
):
    settings.ACW_WORKTREE_LEASE = dt.timedelta(hours=5)
    for lease, hours in ((None, 5), (dt.timedelta(hours=2), 2)):
        worktree = holds.acquire(workspace, holder="agent", lease=lease)
        assert worktree.lease_expires_at
        assert worktree.heartbeat_at
        lasts = worktree.lease_expires_at - worktree.heartbeat_at
        assert lasts == dt.timedelta(hours=hours)
    lasting = holds.acquire(workspace, holder="agent", lease=holds.UNTIL_RELEASED)
    assert lasting.lease_expires_at is None


def test_what_can_be_refused_beforehand_makes_nothing(
    workspace: Workspace, repository: Repository, settings: Settings
):
    with pytest.raises(InvalidLease):
        holds.acquire(workspace, holder="agent", lease=dt.timedelta(0))
    settings.ACW_WORKSPACE_HARD_LIMIT = 1
    Workspace.objects.update(size_bytes=2)
    with pytest.raises(QuotaExceeded):
        holds.acquire(workspace, holder="agent")
    settings.ACW_WORKSPACE_HARD_LIMIT = 0
    cloning = Workspace(name="demo", host="test-host", state=Workspace.State.CLONING)
    with pytest.raises(NotCloned):
        holds.acquire(cloning, holder="agent")
    git("config", "core.sshCommand", "evil", cwd=repository.path)
    with pytest.raises(ConfigTampered):
        holds.acquire(workspace, holder="agent")
    assert not Worktree.objects.exists()
    assert git("branch", "--list", cwd=repository.path) == ""
    assert not any((repository.directory / "worktrees").glob("*"))


def test_one_out_of_use_is_refused_with_the_reason(
    workspace: Workspace, worktree: Worktree
):
    Worktree.objects.update(
        state=Worktree.State.QUARANTINED, state_reason="its files are another's"
    )
    with pytest.raises(WorktreeQuarantined, match="its files are another's"):
        holds.acquire(workspace, branch="acw/work", holder="agent")
    with pytest.raises(WorktreeQuarantined):
        holds.acquire_again(worktree.pk, holder="agent")
    assert holds.acquire(workspace, holder="agent").pk != worktree.pk


def test_what_a_dead_pruner_had_begun_with_is_given_back(
    workspace: Workspace, worktree: Worktree, repository: Repository
):
    path = Path(worktree.path)
    (path / "untracked").touch()
    Worktree.objects.update(state=Worktree.State.PRUNING)
    moved = paths.trash_path(repository.directory, worktree.pk)
    moved.parent.mkdir(exist_ok=True)
    path.rename(moved)
    taken = holds.acquire(workspace, branch="acw/work", holder="agent")
    assert taken.pk == worktree.pk
    assert (path / "untracked").exists()


def test_one_that_is_worked_on_is_waited_for_and_then_refused(
    workspace: Workspace,
    worktree: Worktree,
    repository: Repository,
    settings: Settings,
):
    Worktree.objects.update(state=Worktree.State.PRUNING)
    settings.ACW_GIT_TIMEOUT = dt.timedelta(milliseconds=200)
    with (
        repository.locked(wait=dt.timedelta(0)),
        pytest.raises(RepositoryBusy, match="try again later"),
    ):
        holds.acquire(workspace, branch="acw/work", holder="agent")


def test_this_very_worktree_is_had_by_its_number(
    workspace: Workspace, worktree: Worktree
):
    again = holds.acquire_again(worktree.pk, holder="other")
    assert (again.pk, again.held_by) == (worktree.pk, "other")
    with pytest.raises(WorktreeHeld, match="held by 'other'"):
        holds.acquire_again(worktree.pk, holder="third")
    with pytest.raises(UnknownArchive):
        holds.acquire_again(12345, holder="other")


def pruned(worktree: Worktree) -> None:
    prune.archive_worktree(worktree.pk, actor="ada")
    assert not Worktree.objects.filter(pk=worktree.pk).exists()
    assert not Path(worktree.path).exists()


@pytest.mark.parametrize("by", ["branch", "holder", "number"])
def test_one_that_was_pruned_is_restored_with_all_that_was_in_it(
    workspace: Workspace, worktree: Worktree, by: str
):
    path = Path(worktree.path)
    mine = commit(path)
    (path / ".env").write_text("KEY=1")
    (path / "README").write_text("changed\n")
    pruned(worktree)
    match by:
        case "branch":
            again = holds.acquire(workspace, branch="acw/work", holder="other")
        case "holder":
            again = holds.acquire(workspace, holder="agent")
        case _:
            again = holds.acquire_again(worktree.pk, holder="other")
    assert (again.pk, again.path) == (worktree.pk, worktree.path)
    assert again.held_by == ("agent" if by == "holder" else "other")
    assert (path / ".env").read_text() == "KEY=1"
    assert git("status", "--porcelain", cwd=path) == "M README\n?? .env"
    assert git("rev-parse", "HEAD", cwd=path) == mine


def test_a_restored_one_is_locked_in_git_and_its_numbers_go_on(
    workspace: Workspace, worktree: Worktree, repository: Repository
):
    first = worktree.fencing_no
    pruned(worktree)
    again = holds.acquire_again(worktree.pk, holder="other")
    assert lock_of(again, repository) == f"acw:{worktree.pk}:{again.fencing_no}"
    # What an earlier holder still has in hand is not this hold's.
    with pytest.raises(StaleHold):
        holds.heartbeat(worktree.pk, fencing_no=first)


def test_another_holder_is_not_given_what_was_pruned_of_somebody(
    workspace: Workspace, worktree: Worktree
):
    pruned(worktree)
    assert holds.acquire(workspace, holder="stranger").pk != worktree.pk


def test_an_archive_that_cannot_be_restored_keeps_nobody_from_working(
    workspace: Workspace,
    worktree: Worktree,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
):
    def damaged(*_: object, **__: object) -> Worktree:
        raise ArchiveDamaged("a byte is another")

    pruned(worktree)
    monkeypatch.setattr(restoring, "restore_locked", damaged)
    with pytest.raises(ArchiveDamaged):
        holds.acquire_again(worktree.pk, holder="agent")
    fresh = holds.acquire(workspace, branch="acw/work", holder="agent")
    assert fresh.pk != worktree.pk
    assert "worktree.not_restored" in caplog.messages
    assert WorktreeArchive.objects.get().state == WorktreeArchive.State.VERIFIED


def test_a_command_in_a_directory_that_is_gone_is_run_nowhere_else(tmp_path: Path):
    with pytest.raises(GitError, match="No such file or directory"):
        run_git(["status"], cwd=tmp_path / "gone")


def test_what_the_database_refuses_of_a_new_hold_leaves_nobody_holding_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    hold = leases.hold

    def refused(*arguments: Any, **options: Any) -> None:
        hold(*arguments, **options)
        raise OperationalError("canceling statement due to statement timeout")

    with monkeypatch.context() as patched:
        patched.setattr(leases, "hold", refused)
        with pytest.raises(OperationalError):
            holds.acquire(workspace, branch="topic", holder="agent")
    assert not Worktree.objects.held().exists()
    assert holds.acquire(workspace, branch="topic", holder="agent").fencing_no == 1


@pytest.mark.django_db(transaction=True)
def test_a_session_that_is_lost_after_the_hold_leaves_nobody_holding_it(
    worktree: Worktree, monkeypatch: pytest.MonkeyPatch
):
    def lost(*_: object) -> None:
        raw = connection.connection
        with psycopg.connect(raw.info.dsn, password=raw.info.password) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [raw.info.backend_pid])
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")

    with monkeypatch.context() as patched:
        patched.setattr(worktrees, "lock", lost)
        with pytest.raises(OperationalError):
            holds.acquire_again(worktree.pk, holder="agent")
    assert not Worktree.objects.held().exists()
    assert holds.acquire_again(worktree.pk, holder="other").held_by == "other"
