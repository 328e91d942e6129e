from __future__ import annotations

import datetime as dt
import json

import pytest
from django.core.management.base import CommandError
from django.utils import timezone

from jobs.models import Job
from notify.models import AuditEntry
from tests.workspaces.commands.calling import worktree as worktree_command
from tests.workspaces.conftest import make_idle
from tests.workspaces.factories import WorktreeFactory
from workspaces import job_types, keeping, prune
from workspaces.exceptions import (
    InvalidLease,
    UnknownWorktree,
    WorktreeBusy,
    WorktreeError,
    WorktreeQuarantined,
)
from workspaces.models import Worktree, WorktreeArchive
from workspaces.prune import Outcome

pytestmark = pytest.mark.django_db


@pytest.fixture
def warned() -> Worktree:
    worktree: Worktree = WorktreeFactory(
        prune_warning_at=timezone.now(),
        prune_blocked_at=timezone.now(),
        prune_blocked_reason="too large",
    )
    make_idle(worktree, days=31)
    return worktree


def test_keeping_pinning_and_unpinning_take_back_the_warning_and_are_audited(
    warned: Worktree,
):
    for action, argument in (
        ("keep", {"duration": dt.timedelta(days=3)}),
        ("pin", {}),
        ("unpin", {}),
    ):
        Worktree.objects.update(prune_warning_at=timezone.now())
        now = getattr(keeping, action)(warned.pk, actor="ada", **argument)
        assert (now.prune_warning_at, now.prune_blocked_at) == (None, None)
        assert now.prune_blocked_reason == ""
        entry = AuditEntry.objects.latest("pk")
        assert (entry.actor, entry.action) == ("ada", f"worktree.{action}")
        assert entry.target == f"worktree:{warned.pk}"
        assert prune.due().exists() is False
    assert now.kept_until is not None
    left = now.kept_until - timezone.now()
    assert dt.timedelta(days=2, hours=23) < left <= dt.timedelta(days=3)


def test_one_that_is_unpinned_is_due_again(warned: Worktree):
    keeping.pin(warned.pk, actor="ada")
    assert not prune.due().exists()
    keeping.unpin(warned.pk, actor="ada")
    assert prune.due().exists()


def test_keeping_never_shortens(warned: Worktree):
    longer = keeping.keep(warned.pk, actor="ada", duration=dt.timedelta(days=100))
    assert keeping.keep(warned.pk, actor="ada").kept_until == longer.kept_until


def test_what_cannot_be_kept_is_refused(warned: Worktree):
    with pytest.raises(UnknownWorktree):
        keeping.keep(warned.pk + 1, actor="ada")
    for duration in (dt.timedelta(0), dt.timedelta(days=4000), 30):
        with pytest.raises(InvalidLease, match=r"^keeping for "):
            keeping.keep(warned.pk, actor="ada", duration=duration)  # type: ignore[arg-type] # who has no mypy
    Worktree.objects.update(state=Worktree.State.PRUNING)
    with pytest.raises(WorktreeBusy, match="being pruned"):
        keeping.pin(warned.pk, actor="ada")
    assert not AuditEntry.objects.exists()


def test_archiving_now_is_a_job_of_its_host_once(warned: Worktree):
    for _ in range(2):
        keeping.archive_now(warned.pk, actor="ada")
    (job,) = Job.objects.all()
    assert (job.type, job.queue) == ("worktree.archive", "host:test-host")
    as_of = job_types.as_of(Worktree.objects.get())
    assert job.payload == {"worktree_id": warned.pk, "actor": "ada", "as_of": as_of}
    assert AuditEntry.objects.filter(action="worktree.archive").count() == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"held_by": "agent", "held_since": timezone.now()},
        {"pinned": True},
        {"state": "quarantined"},
    ],
    ids=["held", "pinned", "quarantined"],
)
def test_one_that_may_not_be_removed_is_not_archived(changes: dict[str, object]):
    worktree = WorktreeFactory(**changes)
    with pytest.raises(WorktreeError):
        keeping.archive_now(worktree.pk, actor="ada")
    assert not Job.objects.exists()


def test_one_that_was_taken_out_of_use_is_not_archived_and_the_reason_is_said():
    worktree = WorktreeFactory(state="quarantined", state_reason="it is a link")
    with pytest.raises(WorktreeQuarantined, match="out of use: it is a link"):
        keeping.archive_now(worktree.pk, actor="ada")


def test_the_commands_say_what_they_did(worktree: Worktree):
    key = str(worktree.pk)
    assert worktree_command("keep", key, "--days", "7").startswith(
        f"{key}: not pruned before "
    )
    assert worktree_command("pin", key) == f"{key}: not pruned until it is unpinned\n"
    with pytest.raises(CommandError, match="is pinned; unpin it first"):
        worktree_command("archive", key)
    assert json.loads(worktree_command("unpin", key, "--json"))["pinned"] is False
    with pytest.raises(CommandError, match="longer than nothing"):
        worktree_command("keep", key, "--days", "-99999999999")
    asked = worktree_command("archive", key)
    assert asked == f"{key}: a worker of test-host will archive and remove it\n"
    done = json.loads(worktree_command("archive", key, "--now", "--json"))
    archive = WorktreeArchive.objects.get()
    assert (done["removed"], done["archive_id"]) == (True, archive.pk)
    assert prune.prune_worktree(worktree.pk) is Outcome.NOT_DUE
    with pytest.raises(CommandError, match="there is no worktree"):
        worktree_command("keep", key)
