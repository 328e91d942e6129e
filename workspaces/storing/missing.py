"""Attachments whose bytes are gone: marked in their row, told once, and taken back when the bytes are there again."""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models.functions import Now
from django.urls import reverse

from notify.dispatch import Event, dispatch
from notify.recipients import admins
from workspaces.events import LogEvent
from workspaces.models import Attachment
from workspaces.storing import storage
from workspaces.topics import ATTACHMENT_MISSING

log = logging.getLogger(__name__)

_BATCH = 500
_NAMED = 20


class Marks:
    """What a sweep has found, written in batches; ``lost`` counts what was marked."""

    def __init__(self) -> None:
        self.lost = 0
        self._lost: dict[int, str] = {}
        self._found: list[int] = []

    def lose(self, row: Attachment) -> None:
        """Its bytes are not there."""
        self._lost[row.pk] = row.name
        if len(self._lost) >= _BATCH:
            self.write()

    def found(self, row: Attachment) -> None:
        """Its bytes are there again."""
        self._found.append(row.pk)
        if len(self._found) >= _BATCH:
            self.write()

    def write(self) -> None:
        """Write what has come together, and tell of it in the same transaction."""
        with transaction.atomic():
            back = Attachment.objects.filter(pk__in=self._found)
            back.update(missing_at=None)
            # One that was removed meanwhile is no loss.
            gone = Attachment.objects.filter(
                pk__in=list(self._lost), missing_at__isnull=True
            )
            keys = list(
                gone.order_by("pk").select_for_update().values_list("pk", flat=True)
            )
            Attachment.objects.filter(pk__in=keys).update(missing_at=Now())
            if keys:
                _tell({key: self._lost[key] for key in keys})
        for key in keys:
            log.error(LogEvent.ATTACHMENT_MISSING, extra={"attachment_id": key})
        for key in self._found:
            log.info(LogEvent.ATTACHMENT_FOUND, extra={"attachment_id": key})
        self.lost += len(keys)
        self._lost, self._found = {}, []


def _tell(lost: dict[int, str]) -> None:
    count = len(lost)
    where = f"the disk of {home}" if (home := storage.home()) else storage.description()
    named = [f"{key}: {name}" for key, name in list(lost.items())[:_NAMED]]
    if count > _NAMED:
        named.append(f"and {count - _NAMED} more")
    dispatch(
        Event(
            topic=ATTACHMENT_MISSING.name,
            recipients=admins(),
            title=f"{count} attachment{'s have' if count > 1 else ' has'} lost "
            f"{'their' if count > 1 else 'its'} bytes",
            body="\n".join(
                [
                    f"They are recorded and are not on {where}. Put them back from a backup under the same names; "
                    "the next attachment_cleanup takes the mark away.",
                    *named,
                ]
            ),
            data={
                "url": reverse("admin:workspaces_attachment_changelist")
                + "?missing=yes",
                "count": count,
                "host": storage.home(),
                "attachment_ids": list(lost)[:_NAMED],
            },
        )
    )
