from __future__ import annotations

import datetime as dt

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from tests.workspaces.conftest import make_idle
from tests.workspaces.factories import (
    AttachmentFactory,
    ConversationFactory,
    WorkspaceFactory,
    WorktreeFactory,
)
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


def test_idle_for_exactly_the_threshold_is_not_over_it():
    # The database's clock never stands still for as long as a test takes to look.
    sql = str(Worktree.objects.idle_for(THRESHOLD).query)
    assert '"last_used_at" < (STATEMENT_TIMESTAMP() - 30 days' in sql


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
    assert set(Attachment.objects.on_host("elsewhere")) == {elsewhere}
