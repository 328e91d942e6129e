from __future__ import annotations

import datetime as dt
import logging
import os
import shutil
import time
from pathlib import Path

import pytest
from django.db.models.functions import Now

from notify.models import AuditEntry
from tests.workspaces.conftest import Told
from tests.workspaces.factories import AdminFactory, UserFactory
from tests.workspaces.holding.test_processes import process
from tests.workspaces.remote import commit, git
from workspaces import holds, worktrees
from workspaces.exceptions import WorkspacesError, WorktreeHeld, WrongHost
from workspaces.holding import expiry
from workspaces.models import Workspace, Worktree
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

HOST = "test-host"
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def held(workspace: Workspace) -> Worktree:
    """Held on the branch ``topic`` with a lease of an hour."""
    return holds.acquire(workspace, branch="topic", holder="agent", lease=HOUR)


def pass_over(worktree: Worktree, by: dt.timedelta = 2 * HOUR) -> None:
    """As if it was acquired so long ago, and nothing has happened since."""
    began = time.time() - by.total_seconds() - 60
    path = Path(worktree.path)
    admin = worktrees.known_as(Repository(path.parent.parent), path)
    assert admin
    for file in (path, *admin.iterdir()):
        os.utime(file, (began, began))
    Worktree.objects.filter(pk=worktree.pk).update(
        held_since=Now() - by,
        heartbeat_at=Now() - by,
        lease_expires_at=Now() - by + HOUR,
    )


def holder(worktree: Worktree) -> str | None:
    worktree.refresh_from_db()
    return worktree.held_by


def test_a_hold_whose_lease_ran_out_is_ended_and_told(
    held: Worktree, told: Told, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    Workspace.objects.update(owner=UserFactory(username="ada"))
    (Path(held.path) / "left").touch()
    pass_over(held)
    assert holds.end_expired(HOST) == 1
    assert holder(held) is None
    assert (Path(held.path) / "left").exists()
    assert "worktree.lease_expired" in caplog.messages
    (note,) = told("worktree.lease_expired")
    assert note.user.username == "ada"
    assert "agent held it, and was heard of last at 20" in note.body
    assert held.path in note.body
    audited = AuditEntry.objects.get(action="worktree.lease_expired")
    assert audited.target == f"worktree:{held.pk}"
    assert audited.data["held_by"] == "agent"
    assert holds.end_expired(HOST) == 0
    assert len(told("worktree.lease_expired")) == 1


def test_ending_it_counts_as_use_like_every_release(held: Worktree):
    pass_over(held)
    Worktree.objects.update(last_used_at=Now() - dt.timedelta(days=40))
    holds.end_expired(HOST)
    assert not Worktree.objects.idle_for(HOUR).exists()


def test_a_hold_that_has_not_run_out_or_never_does_stays(
    held: Worktree, workspace: Workspace
):
    task = holds.acquire(workspace, holder="task", lease=holds.UNTIL_RELEASED)
    Worktree.objects.filter(pk=task.pk).update(heartbeat_at=Now() - 900 * HOUR)
    assert holds.end_expired(HOST) == 0
    assert (holder(held), holder(task)) == ("agent", "task")


def test_a_worktree_in_which_a_process_works_is_kept_for_its_holder(
    held: Worktree, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    pass_over(held)
    with process(cwd=Path(held.path)) as number:
        assert holds.end_expired(HOST) == 0
    assert holder(held) == "agent"
    (extended,) = [
        record
        for record in caplog.records
        if record.message == "worktree.lease_extended"
    ]
    assert extended.__dict__["reason"] == f"process {number} works in it"
    # By as long as it was given, and not for ever.
    assert held.lease_expires_at
    assert held.heartbeat_at
    assert held.lease_expires_at - held.heartbeat_at == HOUR
    pass_over(held)
    assert holds.end_expired(HOST) == 1


def test_a_process_in_another_worktree_keeps_only_that(
    held: Worktree, workspace: Workspace
):
    other = holds.acquire(workspace, holder="other", lease=HOUR)
    for worktree in (held, other):
        pass_over(worktree)
    with process(cwd=Path(other.path)):
        assert holds.end_expired(HOST) == 1
    assert (holder(held), holder(other)) == (None, "other")


def test_a_worktree_in_which_something_was_done_is_kept_for_its_holder(held: Worktree):
    pass_over(held)
    commit(Path(held.path))
    assert holds.end_expired(HOST) == 0
    assert holder(held) == "agent"
    # What was done before the last sign of life is no new one.
    assert holds.end_expired(HOST) == 0
    Worktree.objects.update(lease_expires_at=Now() - HOUR / 60)
    assert holds.end_expired(HOST) == 1


def test_a_file_from_the_future_keeps_nothing(held: Worktree):
    pass_over(held)
    later = time.time() + 9e6
    os.utime(held.path, (later, later))
    assert holds.end_expired(HOST) == 1


def test_one_whose_directory_is_gone_or_leads_elsewhere_is_ended(
    held: Worktree, workspace: Workspace, tmp_path: Path
):
    other = holds.acquire(workspace, holder="other", lease=HOUR)
    for worktree in (held, other):
        pass_over(worktree)
        shutil.rmtree(worktree.path)
    Path(other.path).symlink_to(tmp_path)
    assert holds.end_expired(HOST) == 2


def test_one_whose_disk_is_away_is_not_judged(held: Worktree, workspace: Workspace):
    pass_over(held)
    directory = Path(workspace.path).parent
    away = directory.rename(directory.with_name("away"))
    assert holds.end_expired(HOST) == 0
    with pytest.raises(WorkspacesError):
        holds.acquire_again(held.pk, holder="other")
    assert holder(held) == "agent"
    away.rename(directory)
    assert holds.end_expired(HOST) == 1


def test_a_heartbeat_meanwhile_wins(held: Worktree, monkeypatch: pytest.MonkeyPatch):
    pass_over(held)
    look = expiry._sign_of_life

    def heard_of_meanwhile(*arguments: object) -> str:
        sign = look(*arguments)  # type: ignore[arg-type]
        holds.heartbeat(held.pk, fencing_no=held.fencing_no)
        return sign

    monkeypatch.setattr(expiry, "_sign_of_life", heard_of_meanwhile)
    assert holds.end_expired(HOST) == 0
    assert holder(held) == "agent"
    assert not AuditEntry.objects.filter(action="worktree.lease_expired").exists()


def test_without_an_owner_every_admin_is_told(held: Worktree, told: Told):
    AdminFactory(username="root")
    pass_over(held)
    holds.end_expired(HOST)
    assert [note.user.username for note in told("worktree.lease_expired")] == ["root"]


def test_another_hosts_holds_are_not_judged_here(held: Worktree):
    pass_over(held)
    Workspace.objects.update(host="elsewhere")
    assert holds.end_expired(HOST) == 0
    with pytest.raises(WrongHost, match="this is host 'test-host'"):
        holds.end_expired("elsewhere")


@pytest.mark.parametrize("branch", ["topic", None], ids=["its branch", "its holder"])
def test_whoever_wants_it_gets_what_a_dead_conversation_held(
    held: Worktree, workspace: Workspace, branch: str | None
):
    pass_over(held)
    by = "other" if branch else "agent"
    again = holds.acquire(workspace, branch=branch, holder=by)
    assert (again.pk, again.held_by, again.fencing_no) == (held.pk, by, 2)
    pass_over(held)
    assert holds.acquire_again(held.pk, holder="third").fencing_no == 3


def test_whoever_wants_it_does_not_get_what_a_live_conversation_holds(
    held: Worktree, workspace: Workspace
):
    pass_over(held)
    with process(cwd=Path(held.path)), pytest.raises(WorktreeHeld):
        holds.acquire(workspace, branch="topic", holder="other")
    assert holder(held) == "agent"
    assert git("status", "--porcelain", cwd=Path(held.path)) == ""
