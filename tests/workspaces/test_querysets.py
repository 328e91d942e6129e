from __future__ import annotations

import contextlib
import datetime as dt

import psycopg
import pytest
from django.db import connection
from django.db.models import DateTimeField, Value
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.acceptance.pgbouncer import through
from tests.workspaces.conftest import make_idle
from tests.workspaces.factories import (
    AttachmentFactory,
    ConversationFactory,
    WorkspaceFactory,
    WorktreeFactory,
)
from workspaces import querysets
from workspaces.models import Attachment, Conversation, Workspace, Worktree

pytestmark = pytest.mark.django_db

THRESHOLD = dt.timedelta(days=30)
LEAD = dt.timedelta(days=3)


def held_worktree(**values: object) -> Worktree:
    row: Worktree = WorktreeFactory(
        held_by="agent", held_since=timezone.now(), **values
    )
    return row


def test_a_workspace_is_idle_when_none_of_its_worktrees_is_held():
    empty, idle, busy = WorkspaceFactory.create_batch(3)
    WorktreeFactory(workspace=idle)
    WorktreeFactory(workspace=busy)
    held_worktree(workspace=busy)
    assert set(Workspace.objects.idle()) == {empty, idle}


def test_workspaces_by_whether_their_clone_is_there():
    ready, cloning, failed = (
        WorkspaceFactory(state=state) for state in ("ready", "cloning", "failed")
    )
    assert list(Workspace.objects.cloning()) == [cloning]
    assert list(Workspace.objects.failed()) == [failed]
    assert list(Workspace.objects.to_fetch()) == [ready]


def test_workspaces_by_host_and_by_whether_they_fail():
    here, there = WorkspaceFactory(), WorkspaceFactory(host="elsewhere")
    Workspace.objects.filter(pk=there.pk).update(failing_since=Now())
    assert set(Workspace.objects.on_host("test-host")) == {here}
    assert set(Workspace.objects.failing()) == {there}


def test_worktrees_by_who_may_have_them():
    free, held = WorktreeFactory(), held_worktree()
    pruning = WorktreeFactory(state=Worktree.State.PRUNING)
    creating = WorktreeFactory(state=Worktree.State.CREATING)
    assert set(Worktree.objects.free()) == {free}
    assert set(Worktree.objects.held()) == {held}
    assert set(Worktree.objects.unfinished()) == {pruning, creating}


@pytest.mark.parametrize(
    ("idle", "warn", "prune"),
    [
        (dt.timedelta(days=26, hours=23, minutes=59), False, False),
        (dt.timedelta(days=27, seconds=1), True, False),
        (dt.timedelta(days=29, hours=23, minutes=59), True, False),
        (dt.timedelta(days=30, seconds=1), False, True),
    ],
)
def test_a_worktree_is_due_for_a_warning_then_for_pruning(
    idle: dt.timedelta, warn: bool, prune: bool
):
    make_idle(WorktreeFactory(), seconds=idle.total_seconds())
    due = Worktree.objects.due_for_warning(threshold=THRESHOLD, lead=LEAD)
    assert due.exists() is warn
    assert Worktree.objects.prunable(THRESHOLD).exists() is prune


@pytest.mark.parametrize(
    "now",
    [
        dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC),
        dt.datetime(2028, 3, 1, tzinfo=dt.UTC),
    ],
    ids=["as clocks change", "after a leap day"],
)
def test_idle_for_exactly_the_threshold_is_not_over_it(
    now: dt.datetime, monkeypatch: pytest.MonkeyPatch
):
    # The database's own clock never stands still for as long as a test takes to look.
    still = Value(now, output_field=DateTimeField())
    monkeypatch.setattr(querysets, "Now", lambda: still)
    worktree = WorktreeFactory(prune_warning_at=None)

    def answers(idle: dt.timedelta) -> tuple[bool, bool]:
        Worktree.objects.update(last_used_at=now - idle)
        due = Worktree.objects.due_for_warning(threshold=THRESHOLD, lead=LEAD)
        return due.exists(), Worktree.objects.prunable(THRESHOLD).exists()

    tick = dt.timedelta(microseconds=1)
    assert answers(THRESHOLD - LEAD) == (False, False)
    assert answers(THRESHOLD - LEAD + tick) == (True, False)
    assert answers(THRESHOLD) == (True, False)
    assert answers(THRESHOLD + tick) == (False, True)

    rows = Worktree.objects.filter(pk=worktree.pk)
    for at, prunable in ((now - LEAD + tick, False), (now - LEAD, True)):
        rows.update(prune_warning_at=at)
        warned = Worktree.objects.prunable(THRESHOLD, warned_for=LEAD)
        assert warned.exists() is prunable
    for until, prunable in ((now + tick, False), (now, True)):
        rows.update(kept_until=until)
        assert Worktree.objects.prunable(THRESHOLD).exists() is prunable


def test_what_is_kept_is_warned_of_before_that_is_over():
    worktree = WorktreeFactory()
    make_idle(worktree, days=200)

    def warned(**kept: float) -> bool:
        Worktree.objects.update(kept_until=Now() + dt.timedelta(**kept))
        due = Worktree.objects.due_for_warning(threshold=THRESHOLD, lead=LEAD)
        return due.exists()

    assert not warned(days=4)
    assert warned(days=2)
    assert not warned(days=-1)  # it is prunable
    due = Worktree.objects.due_for_warning(
        threshold=THRESHOLD, lead=LEAD, also_late=True
    )
    assert due.exists()


def test_a_pinned_one_and_one_that_was_put_out_of_use_are_due_for_nothing():
    for changes in ({"pinned": True}, {"state": "quarantined"}):
        for days in (28, 4000):
            make_idle(WorktreeFactory(**changes), days=days)
    due = Worktree.objects.due_for_warning(threshold=THRESHOLD, lead=LEAD)
    assert not due.exists()
    assert not Worktree.objects.prunable(THRESHOLD).exists()


def test_one_that_was_warned_of_is_not_due_again():
    worktree = WorktreeFactory(prune_warning_at=timezone.now())
    make_idle(worktree, days=28)
    due = Worktree.objects.due_for_warning(threshold=THRESHOLD, lead=LEAD)
    assert not due.exists()


def test_a_held_one_is_due_for_nothing():
    make_idle(held_worktree(), days=28)
    make_idle(held_worktree(), days=4000)
    due = Worktree.objects.due_for_warning(threshold=THRESHOLD, lead=LEAD)
    assert not due.exists()
    assert not Worktree.objects.prunable(THRESHOLD).exists()


def test_one_whose_pruning_was_interrupted_is_still_to_be_pruned():
    worktree = WorktreeFactory(state=Worktree.State.PRUNING)
    make_idle(worktree, days=31)
    make_idle(WorktreeFactory(state=Worktree.State.CREATING), days=31)
    assert set(Worktree.objects.prunable(THRESHOLD)) == {worktree}


def test_conversations_are_deleted_softly_and_come_back():
    conversation = ConversationFactory()
    assert Conversation.objects.all().delete_softly() == 1
    assert Conversation.objects.all().delete_softly() == 0
    assert set(Conversation.objects.deleted()) == {conversation}
    assert Conversation.objects.all().undelete() == 1
    assert set(Conversation.objects.kept()) == {conversation}


def test_attachments_by_what_became_of_their_conversation():
    past = timezone.now() - dt.timedelta(days=31)
    AttachmentFactory()
    deleted = AttachmentFactory(conversation__deleted_at=past)
    orphan = AttachmentFactory(conversation=None, orphaned_at=past)
    AttachmentFactory(conversation=None, orphaned_at=timezone.now())
    elsewhere = AttachmentFactory(host="elsewhere")
    assert set(Attachment.objects.of_deleted(THRESHOLD)) == {deleted}
    assert set(Attachment.objects.orphaned(THRESHOLD)) == {orphan}
    assert set(Attachment.objects.reached_from("elsewhere")) == {elsewhere}
    assert Attachment.objects.reached_from("").count() == 5


def test_each_row_comes_once_a_batch_at_a_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(querysets, "_BATCH", 2)
    made = WorkspaceFactory.create_batch(4)
    with CaptureQueriesContext(connection) as queries:
        found = list(querysets.in_batches(Workspace.objects.order_by("-name")))
    assert found == made
    assert len(queries) == 3


@pytest.mark.django_db(transaction=True)
def test_each_row_comes_also_where_every_transaction_is_in_another_session(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(querysets, "_BATCH", 1)
    made = WorkspaceFactory.create_batch(3)
    with through("transaction") as pooler, contextlib.ExitStack() as others:
        found = []
        for workspace in querysets.in_batches(Workspace.objects.all()):
            found.append(workspace)
            # Takes the session that the pooler has just had back.
            other = others.enter_context(psycopg.connect(pooler.url))
            other.execute("SELECT 1")
    assert found == made
