"""What the doctor asks of workspaces: whether they are fetched and kept, and what waits for somebody to look at it."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterable, Iterator

from django.conf import settings
from django.db.models.functions import Now

from jobs.doctor import Finding, error, ok, probe, warning
from workspaces import hosts, paths
from workspaces.models import (
    Attachment,
    Workspace,
    WorkspaceHost,
    Worktree,
    WorktreeArchive,
)
from workspaces.upkeep.places import GONE
from workspaces.upkeep.sizes import in_words

LONG = dt.timedelta(hours=1)
"""Clones, archives and the ends of leases that take longer have come to a halt."""

_NAMED = 5
_NEARLY_FULL = 0.05


@probe("workspaces")
def workspaces() -> Iterator[Finding]:
    """Each is cloned, fetched, sealed and maintained."""
    everything = Workspace.objects.all()
    found = list(_of_workspaces())
    yield from found
    if not found:
        yield ok(f"{everything.count():,} are cloned and fetched")


def _of_workspaces() -> Iterator[Finding]:
    rows = Workspace.objects.order_by("name")
    long_ago = Now() - LONG
    failed = rows.filter(state=Workspace.State.FAILED)
    yield from _named(
        failed.filter(clone_progress=GONE),
        "clones are gone from the disk",
        advice="Is the disk mounted? They are used again when they are back. Otherwise restore them from a backup, or remove them: "
        "workspace remove NAME",
        severe=True,
    )
    yield from _named(
        failed.exclude(clone_progress=GONE),
        "could not be cloned",
        advice="workspace show NAME says why. Mend that, then: workspace fetch NAME, or workspace set-url NAME URL",
    )
    stuck = rows.filter(state=Workspace.State.CLONING, created_at__lt=long_ago)
    yield from _named(
        stuck,
        "have been waiting for their clone for more than an hour",
        advice="Is a worker alive on their host? jobs list --type workspace.clone",
    )
    yield from _named(
        rows.filter(failing_since__lt=long_ago),
        "cannot be fetched for more than an hour",
        advice="workspace show NAME says why; workspace fetch NAME tries it now.",
    )
    yield from _named(
        rows.filter(tampered_since__isnull=False),
        "have keys in their configuration that nobody approved, so that nothing is done with them",
        advice="Look at what it is, then remove it, or: workspace approve NAME",
        severe=True,
    )
    if limit := settings.ACW_WORKSPACE_HARD_LIMIT:
        yield from _named(
            rows.filter(size_bytes__gt=limit),
            "take more than ACW_WORKSPACE_HARD_LIMIT, so that no worktree of them can be acquired",
            advice="worktree list says how large each is. Delete what is not needed in them, have idle ones archived: "
            "worktree archive ID, or raise the limit.",
        )
    yield from _named(
        rows.exclude(maintenance_error=""),
        "could not be maintained",
        advice="workspace maintain NAME tries it now, and says why.",
    )


@probe("worktrees")
def worktrees() -> Iterator[Finding]:
    """None is missing, out of use, or held for ever by who is gone, and no archive was left half made."""
    rows = Worktree.objects.select_related("workspace").order_by("pk")
    long_ago = Now() - LONG
    archives = WorktreeArchive.objects.filter(
        state=WorktreeArchive.State.WRITING, created_at__lt=long_ago
    )
    found = [
        *_named(
            rows.filter(state=Worktree.State.MISSING),
            "are missing on the disk",
            advice="Put the directory back, if it was moved, or acquire it: it is restored from its archive, or checked out anew.",
        ),
        *_named(
            rows.filter(state=Worktree.State.QUARANTINED),
            "are out of use",
            advice="worktree list says why. Put right what it says; workspace reconcile then takes it back.",
        ),
        *_named(
            rows.expired().filter(lease_expires_at__lt=long_ago - _longest_wait()),
            "are held though their leases ran out long ago",
            advice="Is workspace_reconcile on, and a worker alive on their host? runners list; worktree release ID",
        ),
        *_named(
            archives.order_by("pk"),
            "were begun and not verified; nothing was removed for them",
            advice="worktree_prune goes on with them. Why it did not: jobs list --type worktree.prune",
        ),
    ]
    yield from found
    if not found:
        yield ok(f"{rows.count():,} are where they should be")


def _longest_wait() -> dt.timedelta:
    interval: dt.timedelta = settings.JOBS_WORKSPACE_RECONCILE_INTERVAL
    return 2 * interval


@probe("attachments")
def attachments() -> Iterator[Finding]:
    """Each has its bytes, as far as the last ``attachment_cleanup`` saw."""
    rows = Attachment.objects.filter(missing_at__isnull=False).order_by("pk")
    found = list(
        _named(
            [f"{pk}: {name}" for pk, name in rows.values_list("pk", "name")],
            "attachments have lost their bytes",
            advice="Is their disk mounted, and their storage the right one? Otherwise put the files back from a backup under the "
            "same names. Then: runners run attachment_cleanup",
        )
    )
    yield from found
    if not found:
        yield ok(f"{Attachment.objects.count():,} have their bytes")


@probe("disks")
def disks() -> Iterator[Finding]:
    """Each host's data directory is the right one, has room, and has nothing that nobody knows."""
    # Of one that has no workspace any more nothing is looked at again.
    rows = WorkspaceHost.objects.filter(host__in=Workspace.objects.values("host"))
    found = [finding for row in rows for finding in _of_host(row)]
    yield from found
    here = _room_here()
    if here is not None:
        yield here
    if not found and here is None:
        yield ok("all hosts' data directories agree with the database and have room")


def _of_host(row: WorkspaceHost) -> Iterator[Finding]:
    if row.stopped_at is not None:
        yield error(
            f"{row.host}: reconciliation has stopped itself since {row.stopped_at:%Y-%m-%d %H:%M %Z}: {row.stopped_reason}",
            advice="Mount the disk, or connect to the right database. If it is right as it is, on that host: workspace reconcile "
            "--force",
        )
    aside: dict[str, int] = row.found.get("aside", {})
    if aside:
        names = ", ".join(f"{name} ({count})" for name, count in aside.items())
        yield warning(
            f"{row.host}: something was put aside in {names}",
            advice="It lies below .stray of the workspace's directory and is never deleted by itself. Take what you need, then delete "
            "it by hand; worktree_ledger says what it is.",
        )
    for what, advice in (
        (
            "unknown",
            "They are directories of no workspace: move away or delete what nobody needs.",
        ),
        ("failed", "Mend what it says; workspace reconcile tries it again."),
    ):
        names = row.found.get(what, [])
        if names:
            yield warning(f"{row.host}: {what}: {_few(names)}", advice=advice)
    elsewhere = row.host != hosts.this_host()
    if elsewhere and row.disk_total and row.disk_free is not None:
        yield from _room(row.host, row.disk_free, row.disk_total)


def _room_here() -> Finding | None:
    try:
        usage = shutil.disk_usage(paths.data_directory())
    except OSError:
        return None  # nothing was ever put there
    return next(_room(hosts.this_host(), usage.free, usage.total), None)


def _room(host: str, free: int, total: int) -> Iterator[Finding]:
    if free < _NEARLY_FULL * total:
        yield error(
            f"{host}: {in_words(free)} of {in_words(total)} are left on the disk of ACW_DATA_DIR",
            advice="workspace list and worktree list say what takes it. Nothing is deleted for space: delete caches, have idle "
            "worktrees archived (worktree archive ID), or enlarge the disk.",
        )


def _named(
    rows: Iterable[object], what: str, *, advice: str, severe: bool = False
) -> Iterator[Finding]:
    names = [str(row) for row in rows]
    if names:
        make = error if severe else warning
        yield make(f"{len(names):,} {what}: {_few(names)}", advice=advice)


def _few(names: list[str]) -> str:
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
