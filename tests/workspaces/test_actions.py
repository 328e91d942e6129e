from __future__ import annotations

import pytest
from django.utils import timezone

from jobs.models import Job, Priority
from notify.models import AuditEntry
from tests.workspaces.factories import (
    ArchiveFactory,
    AttachmentFactory,
    ConversationFactory,
    WorkspaceFactory,
    WorktreeFactory,
)
from workspaces import actions
from workspaces.exceptions import (
    ArchiveExpired,
    ForeignHold,
    RefusedUrl,
    WorktreeNotHeld,
)
from workspaces.models import (
    Attachment,
    Conversation,
    Workspace,
    Worktree,
    WorktreeArchive,
)
from workspaces.upkeep.places import GONE

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


def test_fetches_are_queued_before_other_work():
    WorkspaceFactory.create_batch(2)
    assert actions.fetch_soon(Workspace.objects.all(), actor="ada") == 2
    assert {job.priority for job in Job.objects.all()} == {Priority.HIGH}
    assert {action for _, action, _ in audited()} == {"workspace.fetch"}


def test_one_that_could_not_be_cloned_is_cloned_instead():
    failed = WorkspaceFactory(state="failed")
    assert actions.fetch_soon([failed], actor="ada") == 1
    assert Job.objects.get().type == "workspace.clone"
    failed.refresh_from_db()
    assert failed.state == "cloning"


def test_another_remote_is_audited_without_its_secrets_and_fetched():
    workspace = WorkspaceFactory(url="https://u:SECRET@git.example/a")
    actions.set_url(workspace, "https://git.example/b", actor="ada")
    workspace.refresh_from_db()
    assert workspace.url == "https://git.example/b"
    entry = AuditEntry.objects.get(action="workspace.set_url")
    assert entry.data["after"] == "https://git.example/b"
    assert "SECRET" not in str(entry.data)
    assert Job.objects.get().type == "workspace.fetch"


def test_a_remote_that_is_refused_changes_nothing():
    with pytest.raises(RefusedUrl):
        actions.set_url(WorkspaceFactory(), "ext::sh", actor="ada")
    assert audited() == []
    assert not Job.objects.exists()


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


def test_a_restore_is_a_job_of_the_archives_host():
    old = ArchiveFactory(workspace__host="there")
    new = ArchiveFactory(worktree_id=old.worktree_id, workspace=old.workspace)
    actions.restore_soon(old, actor="ada")
    job = Job.objects.get()
    assert (job.type, job.ref_id) == ("worktree.restore", str(old.worktree_id))
    assert job.queue == "host:there"
    entry = AuditEntry.objects.get(action="worktree.restore")
    assert (entry.actor, entry.data["archive_id"]) == ("ada", new.pk)


def test_what_cannot_be_restored_is_no_job():
    expired = ArchiveFactory(
        state=WorktreeArchive.State.EXPIRED, expires_at=timezone.now()
    )
    with pytest.raises(ArchiveExpired):
        actions.restore_soon(expired, actor="ada")
    assert not Job.objects.exists()
    assert not AuditEntry.objects.exists()


def test_one_whose_clone_is_gone_from_the_disk_is_looked_for_and_not_cloned_again():
    gone = WorkspaceFactory.create_batch(2, state="failed", clone_progress=GONE)
    actions.fetch_soon(gone, actor="ada")
    assert [job.type for job in Job.objects.all()] == ["workspace.reconcile"]
    assert {row.state for row in Workspace.objects.all()} == {"failed"}
    assert {row.clone_progress for row in Workspace.objects.all()} == {GONE}
