"""What stops reconciliation: so much missing at once that the disk may be another, or the database.

A data directory has a mark, and so has its host's row: where the two differ, nothing that is missing is really gone. Neither a
device's number nor an inode's would say so, since those change when a host restarts.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from django.db import transaction
from django.db.models.functions import Now

from notify.dispatch import Event, dispatch
from notify.links import admin_page
from notify.recipients import admins
from workspaces import paths, topics, worktrees
from workspaces.events import LogEvent
from workspaces.models import WorkspaceHost, Worktree
from workspaces.models.host import MARK_LENGTH

log = logging.getLogger(__name__)

MOST = 10
"""What may be missing or unknown at once, however many there are."""

SHARE = 0.2
"""Of all worktrees of the host; fewer than :data:`FEWEST` are never too many."""

FEWEST = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """Of one look at a host: ``worktrees`` with a row; what is ``missing`` of them, and directories that are ``unknown``."""

    worktrees: int
    missing: int
    unknown: int


def wrong_disk(host: str, *, force: bool = False, dry_run: bool = False) -> str:
    """Why the data directory cannot be this host's, in words; "": it is.

    The first time, the directory is given its mark. ``force`` gives it its mark anew, or takes the one that it has.
    """
    directory = paths.workspaces_directory()
    if not directory.is_dir() or not os.listdir(directory):
        what = "empty" if directory.is_dir() else "not there"
        return f"{directory} is {what}: is the disk mounted, and ACW_DATA_DIR the same?"
    row = WorkspaceHost.objects.filter(host=host).first()
    mark = "" if row is None else row.mark
    there = _mark_of(directory)
    if mark and there == mark:
        return ""
    # Without a pass that came to its end, its writing may have been interrupted.
    is_new = not there and (row is None or row.looked_at is None)
    if is_new or force:
        if not dry_run:
            mark = there or mark or secrets.token_hex(MARK_LENGTH // 2)
            # Before its file: a file without a row would be another database's.
            WorkspaceHost.objects.update_or_create(host=host, defaults={"mark": mark})
            _write_mark(directory, mark)
        return ""
    if not there:
        name = _mark_path(directory).name
        return f"{directory} has lost its mark ({name}): is another disk mounted there, or none?"
    others = WorkspaceHost.objects.filter(mark=there).exclude(host=host)
    if (other := others.first()) is not None:
        return f"{directory} has the mark of host {other.host}: was ACW_HOST changed, or have two hosts one data directory?"
    return f"{directory} has the mark of another database: is this one new, or restored from before this host had workspaces?"


def too_many(count: Count) -> str:
    """Why so many cannot be right, in words; "": they can."""
    if count.unknown and not Worktree.objects.exists():
        return f"there is no worktree at all in the database, and {count.unknown} on the disk: is this another database?"
    number = count.missing + count.unknown
    everything = count.worktrees + count.unknown
    if number > MOST or (number >= FEWEST and number > SHARE * everything):
        return (
            f"of {everything} worktrees {count.missing} are missing and {count.unknown} are unknown to the database: is the disk"
            " mounted, and is this the right database?"
        )
    return ""


def stop(host: str, reason: str) -> None:
    """Record that reconciliation has stopped itself there, and tell every admin, once until it goes on."""
    WorkspaceHost.objects.get_or_create(host=host)
    with transaction.atomic():
        row = WorkspaceHost.objects.select_for_update().get(host=host)
        new = row.stopped_at is None
        WorkspaceHost.objects.filter(pk=row.pk).update(
            stopped_reason=reason, **({"stopped_at": Now()} if new else {})
        )
        if new:
            dispatch(_event(row, reason))
    log.error(LogEvent.RECONCILE_STOPPED, extra={"host": host, "reason": reason})


def has_stopped(host: str) -> bool:
    """Whether reconciliation has stopped itself there, by the last pass."""
    return WorkspaceHost.objects.filter(host=host, stopped_at__isnull=False).exists()


def passed(host: str, found: Mapping[str, object]) -> None:
    """Record that a pass over the host's disk came to its end, and what it found."""
    room: dict[str, int] = {}
    with contextlib.suppress(FileNotFoundError):
        usage = shutil.disk_usage(paths.data_directory())
        room = {"disk_free": usage.free, "disk_total": usage.total}
    WorkspaceHost.objects.update_or_create(
        host=host,
        defaults={
            "looked_at": Now(),
            "stopped_at": None,
            "stopped_reason": "",
            "found": dict(found),
            **room,
        },
    )


def _mark_path(directory: Path) -> Path:
    return directory / ".mark"


def _mark_of(directory: Path) -> str:
    read = worktrees.read_line(_mark_path(directory))
    return "" if read is None else read.decode(errors="replace").strip()[:MARK_LENGTH]


def _write_mark(directory: Path, mark: str) -> None:
    written = directory / f".mark-{secrets.token_hex(8)}"
    written.write_text(f"{mark}\n")
    os.rename(written, _mark_path(directory))


def _event(row: WorkspaceHost, reason: str) -> Event:
    host = row.host
    return Event(
        topic=topics.RECONCILE_STOPPED.name,
        recipients=admins(),
        title=f"Reconciliation of {host} has stopped itself",
        body=(
            f"{reason}\n\nNothing was changed, and nothing will be until that is mended; then it goes on by itself. If it is right as"
            f" it is, run this on {host}: manage.py workspace reconcile --force"
        ),
        data={
            "url": admin_page(row),
            "host": host,
            "reason": reason,
        },
    )
