"""What an operator does by hand, from the admin or the command line; each is audited with what it does."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from jobs.enqueue import enqueue_many
from jobs.models import Priority
from jobs.redaction import redact
from notify import audit
from workspaces import holds, job_types, remotes
from workspaces.archiving import lookup
from workspaces.attachments import detach
from workspaces.models import Conversation, Workspace, Worktree, WorktreeArchive
from workspaces.querysets import AttachmentQuerySet, ConversationQuerySet
from workspaces.upkeep.places import GONE, was_gone


def release(
    worktree_id: int,
    *,
    actor: str,
    holder: str | None = None,
    fencing_no: int | None = None,
) -> Worktree:
    """Let a worktree go, whoever holds it; the other arguments and the errors are those of :func:`holds.release`."""
    return release_once(worktree_id, actor=actor, holder=holder, fencing_no=fencing_no)[
        0
    ]


def release_once(
    worktree_id: int,
    *,
    actor: str,
    holder: str | None = None,
    fencing_no: int | None = None,
) -> tuple[Worktree, bool]:
    """:func:`release`, and whether the worktree was still held by that hold."""
    with transaction.atomic():
        before = Worktree.objects.filter(pk=worktree_id).values_list(
            "held_by", flat=True
        )
        held_by = before.first()
        worktree, was_held = holds.release_once(
            worktree_id, holder=holder, fencing_no=fencing_no
        )
        if was_held:
            audit.record(
                actor,
                "worktree.release",
                target=f"worktree:{worktree_id}",
                data={"workspace": worktree.workspace.name, "held_by": held_by},
            )
    return worktree, was_held


def fetch_soon(workspaces: Iterable[Workspace], *, actor: str) -> int:
    """Have each fetched before other work, if it is idle, or cloned where it is not; return how many were asked for.

    One whose clone is gone from the disk is looked for there, and not cloned again: its worktrees and archives come back with it.
    """
    with transaction.atomic():
        listed = list(workspaces)
        gone = {row.host for row in listed if was_gone(row)}
        unmade = [row.pk for row in listed if row.state != Workspace.State.READY]
        Workspace.objects.filter(pk__in=unmade).failed().exclude(
            clone_progress=GONE
        ).update(state=Workspace.State.CLONING, clone_progress="")
        enqueue_many(
            job_types.clone(workspace)
            if workspace.pk in unmade
            else job_types.fetch(workspace, priority=Priority.HIGH)
            for workspace in listed
            if not was_gone(workspace)
        )
        enqueue_many(job_types.reconcile(host) for host in sorted(gone))
        for workspace in listed:
            audit.record(actor, "workspace.fetch", target=f"workspace:{workspace.name}")
    return len(listed)


def set_url(workspace: Workspace, url: str, *, actor: str) -> None:
    """Give the workspace another remote, and have it fetched from there, or cloned where it is not.

    What it has of the one before stays, but for the branches that the new one has not. Raises
    :class:`~workspaces.exceptions.RefusedUrl`.
    """
    remotes.parse(url)
    with transaction.atomic():
        row = Workspace.objects.select_for_update(of=("self",)).get(pk=workspace.pk)
        before, row.url = row.url, url
        row.save(update_fields=["url"])
        audit.record(
            actor,
            "workspace.set_url",
            target=f"workspace:{row.name}",
            data={"before": redact(before), "after": redact(url)},
        )
        fetch_soon([row], actor=actor)


def restore_soon(archive: WorktreeArchive, *, actor: str) -> None:
    """Have the archive's worktree restored by a worker of its host, from the newest archive that there is of it.

    Raises :class:`~workspaces.exceptions.ArchiveExpired` and ``UnknownArchive``.
    """
    newest = lookup.required(archive.worktree_id)
    with transaction.atomic():
        enqueue_many([job_types.restore(newest, actor=actor)])
        audit.record(
            actor,
            "worktree.restore",
            target=f"worktree:{newest.worktree_id}",
            data={
                "workspace": newest.workspace.name,
                "branch": newest.branch,
                "archive_id": newest.pk,
            },
        )


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
