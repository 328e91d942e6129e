"""Removing attachments that nobody needs any more, on this host's disk: rows, then bytes.

Past the retention go those of conversations that are deleted, orphans, and files that have no row.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import transaction

from workspaces import hosts, paths
from workspaces.events import LogEvent
from workspaces.models import Attachment
from workspaces.querysets import AttachmentQuerySet
from workspaces.storage import attachment_storage

log = logging.getLogger(__name__)

_BATCH = 500
UNRECORDED_AGE = dt.timedelta(hours=1)
"""A file younger than this may be of an upload whose row is not committed yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Removed:
    """How many attachments went, and how many files that had no row."""

    attachments: int
    files: int


def clean_up(*, stop: Callable[[], bool] = lambda: False) -> Removed:
    """Remove what is past ``JOBS_ATTACHMENT_CLEANUP_RETENTION`` on this host.

    What cannot be deleted is logged and left to the next run.
    """
    retention = settings.JOBS_ATTACHMENT_CLEANUP_RETENTION
    mine = Attachment.objects.on_host(hosts.this_host())
    attachments = _remove(
        # Locked with its conversation, so that none is undeleted while its attachments go.
        mine.of_deleted(retention).select_related("conversation"),
        of=("self", "conversation"),
        stop=stop,
    )
    attachments += _remove(mine.orphaned(retention), of=("self",), stop=stop)
    return Removed(attachments=attachments, files=_sweep(retention, stop=stop))


def _remove(
    expired: AttachmentQuerySet, *, of: tuple[str, ...], stop: Callable[[], bool]
) -> int:
    removed = 0
    while not stop():
        with transaction.atomic():
            locked = expired.select_for_update(skip_locked=True, of=of).order_by("pk")
            batch = list(locked[:_BATCH])
            Attachment.objects.filter(
                pk__in=[attachment.pk for attachment in batch]
            ).delete()
        # Only now: a row whose bytes are gone could not be mended.
        for attachment in batch:
            if _delete_file(attachment.file.name or ""):
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


def _sweep(retention: dt.timedelta, *, stop: Callable[[], bool]) -> int:
    """Delete files that have no row, whatever their host: the directory may be shared."""
    oldest = time.time() - max(retention, UNRECORDED_AGE).total_seconds()
    removed = 0
    for names in _batches(_old_files(paths.attachments_directory(), oldest)):
        if stop():
            break
        recorded = set(
            Attachment.objects.filter(file__in=names).values_list("file", flat=True)
        )
        for name in names:
            if name not in recorded and _delete_file(name):
                log.info(LogEvent.ATTACHMENT_FILE_REMOVED, extra={"file": name})
                removed += 1
    return removed


def _old_files(top: Path, oldest: float) -> Iterator[str]:
    """Names, below ``top``, of files last written before ``oldest`` (Unix seconds); links are passed by."""
    for directory, _, names in os.walk(top):
        for name in names:
            path = Path(directory, name)
            try:
                found = path.lstat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(found.st_mode) and found.st_mtime < oldest:
                yield str(path.relative_to(top))


def _batches(names: Iterator[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for name in names:
        batch.append(name)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _delete_file(name: str) -> bool:
    """Delete one file; a name that leads out of the directory is refused by the storage."""
    try:
        attachment_storage().delete(name)
    except Exception as error:  # one that cannot be deleted never holds up the others
        log.error(LogEvent.ATTACHMENT_FAILED, extra={"file": name, "error": str(error)})
        return False
    return True
