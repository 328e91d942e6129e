"""Attachments: storing one, letting go of one, opening one.

Bytes are written before their row and deleted after it (:mod:`workspaces.storing.cleanup`). A crash in between, or a transaction
that is rolled back, leaves bytes without a row, which :mod:`workspaces.storing.sweep` finds, and never a row without bytes.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import IO

from django.core.files.base import File
from django.db import transaction
from django.db.models.functions import Now

from jobs.redaction import words
from workspaces.events import LogEvent
from workspaces.exceptions import AttachmentError, StorageFailed, WrongHost
from workspaces.models import Attachment, Conversation
from workspaces.storing import file_claims, storage, uploads

log = logging.getLogger(__name__)


def attach(
    conversation: Conversation | None,
    *,
    name: str,
    content: bytes | File[bytes],
    content_type: str = uploads.UNKNOWN_TYPE,
) -> Attachment:
    """Store ``content`` as an attachment of the conversation and return its row.

    Without a conversation it is an orphan from the start. Raises
    :class:`~workspaces.exceptions.AttachmentError`, which names the argument, and ``StorageFailed``.
    """
    check(conversation, name=name, content_type=content_type)
    with uploads.measured(content) as read, transaction.atomic():
        _check_conversation(conversation)
        with _written(read.content) as file:
            attachment = Attachment.objects.create(
                conversation=conversation,
                file=file,
                name=uploads.checked_name(name),
                size=read.size,
                content_type=uploads.checked_type(content_type),
                digest=read.digest,
                host=storage.home(),
                orphaned_at=Now() if conversation is None else None,
            )
    attachment.refresh_from_db()
    return attachment


@contextlib.contextmanager
def _written(content: File[bytes]) -> Iterator[str]:
    """The name under which the bytes are written; they go again where what is done with it fails.

    Not where the commit does: whoever loses the connection then does not know whether there is a row now.
    """
    name = storage.new_file_name(None, "")
    file_claims.claim(name)
    try:
        wanted, name = name, _write(name, content)
        if name != wanted:
            file_claims.claim(name)
        yield name
    except BaseException:
        discard(name)
        raise


def _write(wanted: str, content: File[bytes]) -> str:
    """Write the bytes under the name, or the one that the storage prefers; return that."""
    longest = Attachment._meta.get_field("file").max_length
    try:
        return storage.attachment_storage().save(wanted, content, max_length=longest)
    except Exception as error:  # whatever a storage of others may raise
        log.error(
            LogEvent.ATTACHMENT_FAILED, extra={"file": wanted, "error": words(error)}
        )
        why = getattr(error, "strerror", None) or type(error).__name__
        raise StorageFailed(
            f"content: {storage.description()} could not store it: {why}"
        ) from error


def discard(name: str) -> bool:
    """Delete one file, if it is there, and tell whether that could be done; where it could not, that is logged.

    A name that leads out of the storage is refused by it.
    """
    try:
        storage.attachment_storage().delete(name)
    except Exception as error:  # one that cannot be deleted never holds up the others
        log.error(
            LogEvent.ATTACHMENT_FAILED, extra={"file": name, "error": words(error)}
        )
        return False
    return True


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
    here = storage.home()
    if here and attachment.host != here:
        kept = (
            f"lies on host {attachment.host!r}" if attachment.host else "is elsewhere"
        )
        raise WrongHost(f"attachment {attachment.pk} {kept}, and this is {here!r}")
    opened: IO[bytes] = storage.attachment_storage().open(
        attachment.file.name or "", "rb"
    )
    return opened


def check(conversation: Conversation | None, *, name: str, content_type: str) -> None:
    """Raise :class:`~workspaces.exceptions.AttachmentError` for what :func:`attach` would refuse before it reads."""
    uploads.checked_name(name)
    uploads.checked_type(content_type)
    _check_conversation(conversation)


def _check_conversation(conversation: Conversation | None) -> None:
    if conversation is None:
        return
    kept = Conversation.objects.filter(pk=conversation.pk)
    deleted = kept.values_list("deleted_at", flat=True)
    if not deleted:
        raise AttachmentError(f"conversation: {conversation.pk} is gone")
    if deleted[0] is not None:
        raise AttachmentError(
            f"conversation: {conversation.pk} is deleted; undelete it first"
        )
