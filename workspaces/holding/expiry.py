"""The end of leases that ran out: a dead conversation holds no worktree for ever, and a live one does not lose its own.

Before a hold is ended, the worktree is looked at: while a process works in it, or something was done in it since the last
heartbeat, the hold is extended instead, by as long as it was given.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models.functions import Now

from notify import audit
from notify.dispatch import Event, dispatch
from notify.recipients import owner_or_admins
from workspaces import hosts, paths, topics
from workspaces.events import LogEvent
from workspaces.exceptions import OutsideDataDirectory
from workspaces.holding import activity, leases, processes
from workspaces.models import Worktree
from workspaces.querysets import WorktreeQuerySet
from workspaces.repository import Repository

log = logging.getLogger(__name__)


def end_expired(host: str) -> int:
    """End the holds on this host whose lease ran out and that are not in use; return how many.

    Raises :class:`~workspaces.exceptions.WrongHost` where ``host`` is another: only a worktree's own host can see who works
    in it.
    """
    hosts.check_host(host)
    return end_among(Worktree.objects.filter(workspace__host=host))


def end_among(rows: WorktreeQuerySet) -> int:
    """:func:`end_expired` of those of the rows, which are this host's, that have run out."""
    expired = list(
        rows.expired().select_related("workspace__owner").annotate(now=Now())
    )
    if not expired:
        return 0
    used = processes.in_use(paths.workspaces_directory())
    return sum(_end(worktree, used) for worktree in expired)


def _end(worktree: Worktree, used: dict[int, list[str]]) -> bool:
    if not _can_be_looked_at(worktree):
        return (
            False  # its disk is away, say, and its agent may be at work when it is back
        )
    sign = _sign_of_life(worktree, used)
    same = Worktree.objects.expired().filter(
        pk=worktree.pk, fencing_no=worktree.fencing_no
    )
    if sign:
        if same.update(heartbeat_at=Now(), lease_expires_at=leases.extended()):
            log.info(
                LogEvent.WORKTREE_LEASE_EXTENDED,
                extra={**leases.facts(worktree), "reason": sign},
            )
        return False
    with transaction.atomic():
        if not same.update(**leases.over()):
            return False  # a heartbeat or a release was quicker
        audit.record(
            audit.SYSTEM,
            LogEvent.WORKTREE_LEASE_EXPIRED,
            target=f"worktree:{worktree.pk}",
            data={
                "workspace": worktree.workspace.name,
                "held_by": worktree.held_by,
                "fencing_no": worktree.fencing_no,
            },
        )
        dispatch(_event(worktree))
    log.warning(
        LogEvent.WORKTREE_LEASE_EXPIRED,
        extra={**leases.facts(worktree), "holder": worktree.held_by},
    )
    return True


def _can_be_looked_at(worktree: Worktree) -> bool:
    """Whether its workspace's clone is where it has to be, beside which it lies; that it is gone itself says nothing of its disk."""
    try:
        return Repository(paths.own_directory(worktree.workspace)).path.is_dir()
    except (OutsideDataDirectory, OSError):
        return False


def _sign_of_life(worktree: Worktree, used: dict[int, list[str]]) -> str:
    """What shows that it is in use; "" where nothing does."""
    below = f"{worktree.path}/"
    for process, used_paths in used.items():
        if any(f"{used_path}/".startswith(below) for used_path in used_paths):
            return f"process {process} works in it"
    try:
        path = paths.own_worktree_path(worktree)
        directory = paths.own_directory(worktree.workspace)
    except OutsideDataDirectory:
        return ""
    since = worktree.heartbeat_at or worktree.held_since
    if since is None:
        return ""
    # How long ago, by one clock each: the database's and this host's may differ.
    quiet = worktree.now - since  # type: ignore[attr-defined] # annotated
    done = activity.last_change(Repository(directory), path)
    if done is not None and done < quiet:
        return "something was done in it since the last heartbeat"
    return ""


def _event(worktree: Worktree) -> Event:
    workspace = worktree.workspace
    since = worktree.heartbeat_at or worktree.held_since
    return Event(
        topic=topics.LEASE_EXPIRED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Worktree {worktree.branch} of {workspace.name} was let go of: nothing was heard of its holder",
        body=(
            f"{worktree.held_by} held it, and was heard of last at {since:%Y-%m-%d %H:%M %Z}. No process works in it, and "
            f"nothing was done in it since. All that is in it stays: it is in {worktree.path} on {workspace.host}, can be acquired "
            "again, and is pruned like any other when nobody does."
        ),
        data={
            **topics.about(worktree),
            "held_by": worktree.held_by,
            "fencing_no": worktree.fencing_no,
        },
    )
