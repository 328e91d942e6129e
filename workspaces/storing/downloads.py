"""Attachments as they are handed out: as files to be saved, to those who may see them.

What agents and users stored is never shown as a page of this site: whatever its type, it comes as bytes, which
browsers save.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from urllib.parse import quote

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.core.exceptions import SuspiciousFileOperation
from django.http import FileResponse, HttpResponse, HttpResponseBase

from jobs.redaction import words
from workspaces import attachments
from workspaces.events import LogEvent
from workspaces.exceptions import AttachmentError, WrongHost
from workspaces.models import Attachment
from workspaces.storing import uploads

log = logging.getLogger(__name__)

_NOT_PLAIN = re.compile(r'[^ -~]|["%\\/]')
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def may_see(user: AbstractBaseUser | AnonymousUser, attachment: Attachment) -> bool:
    """Staff who may see attachments see all; the owner of a conversation those of it, while it is not deleted."""
    if (
        isinstance(user, PermissionsMixin)
        and getattr(user, "is_staff", False)
        and user.has_perm("workspaces.view_attachment")
    ):
        return True
    conversation = attachment.conversation
    return (
        conversation is not None
        and conversation.deleted_at is None
        and conversation.owner_id is not None
        and conversation.owner_id == user.pk
    )


def download(attachment: Attachment) -> HttpResponseBase:
    """The bytes, or a 404 that says in words why they cannot be had here; a 503 while their storage fails."""
    try:
        content = attachments.open_bytes(attachment)
    except WrongHost:
        return _refused(
            f"It is kept on the disk of host {attachment.host or 'unknown'}, whose web server has it."
        )
    except (FileNotFoundError, SuspiciousFileOperation):
        return _refused("Its bytes are missing.")
    except Exception as error:  # whatever a storage of others may raise
        log.error(
            LogEvent.ATTACHMENT_FAILED,
            extra={"file": attachment.file.name, "error": words(error)},
        )
        return _refused(
            "The storage of its bytes does not answer; try again later.", status=503
        )
    response = FileResponse(
        content, content_type="application/octet-stream", headers=_HEADERS
    )
    response["Content-Disposition"] = _disposition(attachment.name)
    return response


def _disposition(name: str) -> str:
    """To be saved under the name; beside any but a plain one stands a plain one, since some clients know no other."""
    composed = unicodedata.normalize("NFKD", name)
    bare = "".join(each for each in composed if not unicodedata.combining(each))
    plain = _NOT_PLAIN.sub("_", bare)
    try:
        uploads.checked_name(plain)
    except AttachmentError:
        # "\N{TWO DOT LEADER}" is ".." when it is plain.
        plain = "attachment"
    said = f'attachment; filename="{plain}"'
    return said if plain == name else f"{said}; filename*=utf-8''{quote(name, safe='')}"


def _refused(reason: str, *, status: int = 404) -> HttpResponse:
    return HttpResponse(
        reason,
        status=status,
        content_type="text/plain; charset=utf-8",
        headers=_HEADERS,
    )
