"""Attachments: storing one, letting go of one, opening one.

Bytes are written before their row and deleted after it (:mod:`workspaces.cleanup`). A crash in between
leaves bytes without a row, which the sweep finds, and never a row without bytes.
"""

from __future__ import annotations

from typing import IO

from django.core.files.base import ContentFile, File
from django.db.models.functions import Now

from workspaces import hosts
from workspaces.exceptions import AttachmentError, WrongHost
from workspaces.models import Attachment, Conversation

NAME_MAX_LENGTH = 255


def attach(
    conversation: Conversation | None,
    *,
    name: str,
    content: bytes | File[bytes],
    content_type: str = "application/octet-stream",
) -> Attachment:
    """Store ``content`` as an attachment of the conversation and return its row.

    Without a conversation it is an orphan from the start. Raises
    :class:`~workspaces.exceptions.AttachmentError`, which names the argument.
    """
    check(conversation, name=name, content_type=content_type)
    data = ContentFile(content) if isinstance(content, bytes) else content
    attachment = Attachment(
        conversation=conversation,
        name=name,
        size=data.size,
        content_type=content_type,
        host=hosts.this_host(),
        orphaned_at=Now() if conversation is None else None,
    )
    attachment.file.save(name, data, save=False)
    try:
        attachment.save()
    except BaseException:
        attachment.file.delete(save=False)
        raise
    attachment.refresh_from_db()
    return attachment


def detach(attachment: Attachment) -> bool:
    """Take it out of its conversation; the time after which it is removed begins now.

    Returns False, and changes nothing, where it is in none.
    """
    attached = Attachment.objects.filter(pk=attachment.pk, conversation__isnull=False)
    return bool(attached.update(conversation=None, orphaned_at=Now()))


def open_bytes(attachment: Attachment) -> IO[bytes]:
    """Its bytes, to be read and closed.

    Raises :class:`~workspaces.exceptions.WrongHost` where they lie on another host, and
    FileNotFoundError.
    """
    if attachment.host != hosts.this_host():
        raise WrongHost(
            f"attachment {attachment.pk} lies on host {attachment.host!r}, and this is {hosts.this_host()!r}"
        )
    opened: IO[bytes] = attachment.file.open("rb")
    return opened


def check(conversation: Conversation | None, *, name: str, content_type: str) -> None:
    """Raise :class:`~workspaces.exceptions.AttachmentError` for what :func:`attach` would refuse."""
    if conversation is not None and conversation.deleted_at is not None:
        raise AttachmentError(
            f"conversation: {conversation.pk} is deleted; undelete it first"
        )
    for field, value in {"name": name, "content_type": content_type}.items():
        if not value or len(value) > NAME_MAX_LENGTH or not value.isprintable():
            raise AttachmentError(
                f"{field}: must be printable text of 1 to {NAME_MAX_LENGTH} characters, got {value!r:.300}"
            )
    if "/" in name or "\\" in name:
        raise AttachmentError(
            f"name: must be a file's name without directories, got {name!r}"
        )
