from __future__ import annotations

import pytest
from django.utils import timezone

from jobs.models import Job, Priority
from notify.models import AuditEntry
from tests.workspaces.factories import (
    AttachmentFactory,
    ConversationFactory,
    WorkspaceFactory,
    WorktreeFactory,
)
from workspaces import actions
from workspaces.exceptions import ForeignHold, WorktreeNotHeld
from workspaces.models import Attachment, Conversation, Workspace, Worktree

pytestmark = pytest.mark.django_db


def audited() -> list[tuple[str, str, str]]:
    return list(AuditEntry.objects.values_list("actor", "action", "target"))


def held() -> Worktree:
    row: Worktree = WorktreeFactory(held_by="agent", held_since=timezone.now())
    return row


def test_a_release_is_audited_with_who_held_it():
    worktree = held()
    assert actions.release(worktree.pk, actor="ada").held_by is None
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.target) == (
        "ada",
        "worktree.release",
        f"worktree:{worktree.pk}",
    )
    assert entry.data["held_by"] == "agent"


def test_a_release_that_is_refused_is_not():
    worktree = held()
    with pytest.raises(ForeignHold):
        actions.release(worktree.pk, actor="ada", holder="other")
    with pytest.raises(WorktreeNotHeld):
        actions.release(WorktreeFactory().pk, actor="ada")
    assert audited() == []


def test_of_several_those_that_are_held_are_released():
    free = WorktreeFactory()
    done, refused = actions.release_all([held(), free, held()], actor="ada")
    assert (done, refused) == (2, [f"worktree {free.pk} is not held"])


def test_fetches_are_queued_before_other_work():
    WorkspaceFactory.create_batch(2)
    assert actions.fetch_soon(Workspace.objects.all(), actor="ada") == 2
    assert {job.priority for job in Job.objects.all()} == {Priority.HIGH}
    assert {action for _, action, _ in audited()} == {"workspace.fetch"}


def test_conversations_are_deleted_and_brought_back():
    kept, deleted = (
        ConversationFactory(),
        ConversationFactory(deleted_at=timezone.now()),
    )
    everything = Conversation.objects.all()
    assert actions.delete_conversations(everything, actor="ada") == 1
    assert actions.undelete_conversations(everything, actor="ada") == 2
    assert audited() == [
        ("ada", "conversation.delete", f"conversation:{kept.pk}"),
        ("ada", "conversation.undelete", f"conversation:{kept.pk}"),
        ("ada", "conversation.undelete", f"conversation:{deleted.pk}"),
    ]


def test_attachments_are_detached_and_those_that_are_already_left_out():
    attached = AttachmentFactory(conversation=ConversationFactory())
    AttachmentFactory(conversation=None, orphaned_at=timezone.now())
    assert actions.detach_attachments(Attachment.objects.all(), actor="ada") == 1
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.target) == (
        "ada",
        "attachment.detach",
        f"attachment:{attached.pk}",
    )
    assert entry.data == {"conversation_id": attached.conversation_id}
    assert Attachment.objects.filter(orphaned_at=None).count() == 0
