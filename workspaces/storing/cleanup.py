"""Removing attachments that nobody needs any more: rows, then bytes.

Past the retention go those of conversations that are deleted, and orphans; :mod:`workspaces.storing.sweep` finds what has
only one of the two.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from workspaces import attachments
from workspaces.events import LogEvent
from workspaces.models import Attachment
from workspaces.querysets import AttachmentQuerySet
from workspaces.storing import storage
from workspaces.storing.sweep import exists, sweep

log = logging.getLogger(__name__)

_BATCH = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Removed:
    """How many attachments went, how many files that had no row, and how many rows turned out to have no bytes."""

    attachments: int
    files: int
    missing: int = 0


def clean_up(*, stop: Callable[[], bool] = lambda: False) -> Removed:
    """Remove what is past ``JOBS_ATTACHMENT_CLEANUP_RETENTION`` in the storage that this host reaches.

    What cannot be deleted is logged and left to the next run. Raises what the storage raises when it is listed.
    """
    retention = settings.JOBS_ATTACHMENT_CLEANUP_RETENTION
    mine = Attachment.objects.reached_from(storage.home())
    removed = _remove(
        # Locked with its conversation, so that none is undeleted while its attachments go.
        mine.of_deleted(retention).select_related("conversation"),
        of=("self", "conversation"),
        stop=stop,
    )
    removed += _remove(mine.orphaned(retention), of=("self",), stop=stop)
    swept = sweep(retention, stop=stop)
    return Removed(attachments=removed, files=swept.files, missing=swept.missing)


def _remove(
    expired: AttachmentQuerySet, *, of: tuple[str, ...], stop: Callable[[], bool]
) -> int:
    removed = 0
    while not stop():
        with transaction.atomic():
            locked = expired.select_for_update(skip_locked=True, of=of).order_by("pk")
            batch = list(locked[:_BATCH])
            if batch:
                # Of one that does not answer nothing is forgotten.
                exists(batch[0].file.name or "")
            Attachment.objects.filter(
                pk__in=[attachment.pk for attachment in batch]
            ).delete()
        # Only now: a row whose bytes are gone could not be mended.
        for attachment in batch:
            if attachments.discard(attachment.file.name or ""):
                log.info(
                    LogEvent.ATTACHMENT_REMOVED,
                    extra={
                        "attachment_id": attachment.pk,
                        "conversation_id": attachment.conversation_id,
                        "size": attachment.size,
                    },
                )
        removed += len(batch)
        if len(batch) < _BATCH:
            break
    return removed
