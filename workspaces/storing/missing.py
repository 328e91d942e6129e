"""Attachments whose bytes are gone: marked in their row, told once, and taken back when the bytes are there again."""

from __future__ import annotations

import logging
from collections.abc import Iterator

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
    """What a sweep has found, written at its end: of a disk that is not there, people are told once; ``lost`` counts what was marked."""

    def __init__(self) -> None:
        self.lost = 0
        self._lost: list[int] = []
        self._found: list[int] = []

    def lose(self, row: Attachment) -> None:
        """Its bytes are not there."""
        self._lost.append(row.pk)

    def found(self, row: Attachment) -> None:
        """Its bytes are there again."""
        self._found.append(row.pk)

    def write(self) -> None:
        """Write what has come together, and tell of it in the same transaction."""
        lost: list[tuple[int, str]] = []
        with transaction.atomic():
            for keys in _batches(self._found):
                Attachment.objects.filter(pk__in=keys).update(missing_at=None)
            for keys in _batches(self._lost):
                # One that was removed meanwhile is no loss.
                gone = Attachment.objects.filter(pk__in=keys, missing_at__isnull=True)
                locked = gone.order_by("pk").select_for_update()
                lost += locked.values_list("pk", "name")
                gone.update(missing_at=Now())
            if lost:
                _tell(lost)
        for key, _ in lost:
            log.error(LogEvent.ATTACHMENT_MISSING, extra={"attachment_id": key})
        for key in self._found:
            log.info(LogEvent.ATTACHMENT_FOUND, extra={"attachment_id": key})
        self.lost += len(lost)
        self._lost, self._found = [], []


def _batches(keys: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(keys), _BATCH):
        yield keys[start : start + _BATCH]


def _tell(lost: list[tuple[int, str]]) -> None:
    count = len(lost)
    where = f"the disk of {home}" if (home := storage.home()) else storage.description()
    named = [f"{key}: {name}" for key, name in lost[:_NAMED]]
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
                    f"They are recorded and are not on {where}. Is that the right one, and mounted? Otherwise put them back from a"
                    " backup under the same names. The next attachment_cleanup takes the mark away.",
                    *named,
                ]
            ),
            data={
                "url": reverse("admin:workspaces_attachment_changelist")
                + "?missing=yes",
                "count": count,
                "host": storage.home(),
                "attachment_ids": [key for key, _ in lost[:_NAMED]],
            },
        )
    )
