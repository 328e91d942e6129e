"""What an operator does by hand, from the admin or the command line; each is audited with what it does."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from jobs.enqueue import enqueue_many
from jobs.models import Priority
from notify import audit
from workspaces import holds, job_types
from workspaces.attachments import detach
from workspaces.exceptions import WorktreeError
from workspaces.models import Conversation, Workspace, Worktree
from workspaces.querysets import AttachmentQuerySet, ConversationQuerySet


def release(worktree_id: int, *, actor: str, holder: str | None = None) -> Worktree:
    """Let a worktree go, whoever holds it; ``holder`` and the errors are those of :func:`holds.release`."""
    with transaction.atomic():
        before = Worktree.objects.filter(pk=worktree_id).values_list(
            "held_by", flat=True
        )
        held_by = before.first()
        worktree = holds.release(worktree_id, holder=holder)
        audit.record(
            actor,
            "worktree.release",
            target=f"worktree:{worktree_id}",
            data={"workspace": worktree.workspace.name, "held_by": held_by},
        )
    return worktree


def release_all(worktrees: Iterable[Worktree], *, actor: str) -> tuple[int, list[str]]:
    """Let go of each; return how many were released, and why the others were not."""
    done, refused = 0, []
    for worktree in worktrees:
        try:
            release(worktree.pk, actor=actor)
            done += 1
        except WorktreeError as error:
            refused.append(str(error))
    return done, refused


def fetch_soon(workspaces: Iterable[Workspace], *, actor: str) -> int:
    """Have each fetched before other work, if it is idle; return how many were asked for."""
    with transaction.atomic():
        listed = list(workspaces)
        enqueue_many(
            job_types.fetch(workspace, priority=Priority.HIGH) for workspace in listed
        )
        for workspace in listed:
            audit.record(actor, "workspace.fetch", target=f"workspace:{workspace.name}")
    return len(listed)


def delete_conversations(conversations: ConversationQuerySet, *, actor: str) -> int:
    """Delete those that are not deleted yet; their attachments go after the retention."""
    with transaction.atomic():
        keys = _locked(conversations.kept())
        Conversation.objects.filter(pk__in=keys).delete_softly()
        _record(actor, "conversation.delete", keys)
    return len(keys)


def undelete_conversations(conversations: ConversationQuerySet, *, actor: str) -> int:
    """Bring deleted ones back, with what attachments they still have."""
    with transaction.atomic():
        keys = _locked(conversations.deleted())
        Conversation.objects.filter(pk__in=keys).undelete()
        _record(actor, "conversation.undelete", keys)
    return len(keys)


def detach_attachments(attachments: AttachmentQuerySet, *, actor: str) -> int:
    """Take those that are in a conversation out of it; they go after the retention."""
    with transaction.atomic():
        attached = attachments.filter(conversation__isnull=False).order_by("pk")
        count = 0
        for attachment in attached.select_for_update(of=("self",)):
            count += detach(attachment)
            audit.record(
                actor,
                "attachment.detach",
                target=f"attachment:{attachment.pk}",
                data={"conversation_id": attachment.conversation_id},
            )
    return count


def _locked(conversations: ConversationQuerySet) -> list[int]:
    return [row.pk for row in conversations.order_by("pk").select_for_update()]


def _record(actor: str, action: str, keys: Iterable[int]) -> None:
    for key in keys:
        audit.record(actor, action, target=f"conversation:{key}")
