"""Warning of worktrees that will be pruned soon: what is in them, and what can be done about it.

What is in a worktree is seen on its own host only. A tick warns of its own host's at once, has those of other hosts warned of there,
and warns itself, without saying what is in them, of those whose host has no worker.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from jobs.heartbeat import alive_within
from jobs.models import WorkerProcess
from notify.dispatch import Event, dispatch
from notify.recipients import owner_or_admins
from workspaces import hosts, paths, seal, topics
from workspaces.events import LogEvent
from workspaces.exceptions import GitStopped, WorkspacesError
from workspaces.holding import activity, leases
from workspaces.models import Worktree
from workspaces.pruning import contents, prune_time
from workspaces.pruning.contents import Contents
from workspaces.querysets import WorktreeQuerySet, in_batches
from workspaces.repository import Repository, Stop

log = logging.getLogger(__name__)

AT_ONCE = 100
"""Worktrees that one tick looks into itself; those beyond it are looked into by jobs."""


def due() -> WorktreeQuerySet:
    """The worktrees that are to be warned of now."""
    return Worktree.objects.due_for_warning(
        threshold=settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD,
        lead=settings.JOBS_WORKTREE_PRUNE_WARNING_LEAD,
        also_late=settings.JOBS_WORKTREE_PRUNE_REQUIRE_WARNING,
    )


def warn_idle(stop: threading.Event) -> tuple[int, list[Worktree]]:
    """Warn of what is due; return how many were warned of, and those that their own host's worker is to warn of."""
    alive = set(
        WorkerProcess.objects.alive(alive_within()).values_list("host", flat=True)
    )
    warned, left = 0, []
    here = 0
    for worktree in _rows(due()):
        if stop.is_set():
            break
        is_here = worktree.workspace.host == hosts.this_host()
        if is_here and here < AT_ONCE:
            here += 1
            try:
                warned += warn(worktree, stop=stop.is_set)
            except GitStopped:
                break
        elif is_here or worktree.workspace.host in alive:
            left.append(worktree)
        else:
            warned += _tell(worktree, None, "its host has no worker now")
    return warned, left


def warn_worktree(worktree_id: int, *, stop: Stop | None = None) -> bool:
    """Warn of this one, on its host, where that is due; whether it was."""
    for worktree in _rows(due().filter(pk=worktree_id)):
        hosts.check(worktree.workspace)
        return warn(worktree, stop=stop)
    return False


def warn(worktree: Worktree, *, stop: Stop | None = None) -> bool:
    """Look into a worktree of this host that is due, and tell its people; whether they were told.

    They are not where it turns out to be in use. Raises :class:`~workspaces.exceptions.GitStopped`.
    """
    try:
        repository = Repository(paths.own_directory(worktree.workspace))
        path = paths.own_worktree_path(worktree)
        if activity.note(repository, worktree, path):
            return False
        if not path.is_dir():
            return _tell(worktree, None, "its directory is not on the disk")
        seal.check(worktree.workspace, repository)
        found = contents.look(repository, path, stop=stop)
    except GitStopped:
        raise
    except (WorkspacesError, OSError) as error:
        said = str(error) if isinstance(error, WorkspacesError) else error.strerror
        return _tell(worktree, None, said or type(error).__name__)
    return _tell(worktree, found, "")


def _tell(worktree: Worktree, found: Contents | None, problem: str) -> bool:
    """Set the mark and tell, together, so that neither is there without the other; whether it still had to be."""
    with transaction.atomic():
        # One that is being acquired at this moment is not idle.
        rows = due().filter(pk=worktree.pk)
        if rows.select_for_update(skip_locked=True).only("pk").first() is None:
            return False
        rows.update(prune_warning_at=Now())
        # It may have to have been warned of for some time.
        worktree.refresh_from_db(fields=["prune_warning_at"])
        dispatch(_event(worktree, found, problem))
    log.info(LogEvent.WORKTREE_WARNED, extra=leases.facts(worktree))
    return True


def _rows(rows: WorktreeQuerySet) -> Iterator[Worktree]:
    return in_batches(rows.select_related("workspace__owner"))


def _event(worktree: Worktree, found: Contents | None, problem: str) -> Event:
    workspace = worktree.workspace
    at = prune_time.pruned_after(worktree)
    data: dict[str, Any] = {
        **topics.about(worktree),
        "last_used_at": worktree.last_used_at.isoformat(),
        "prune_after": None if at is None else at.isoformat(),
        "contents": None if found is None else found.as_data(),
    }
    when = "soon" if at is None else f"after {at:%Y-%m-%d %H:%M %Z}"
    return Event(
        topic=topics.PRUNE_PENDING.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Worktree {worktree.branch} of {workspace.name} will be archived and removed {when}",
        body="\n\n".join(_body(worktree, found, problem)),
        data=data,
    )


def _body(worktree: Worktree, found: Contents | None, problem: str) -> Iterable[str]:
    yield (
        f"Nobody has used it since {worktree.last_used_at:%Y-%m-%d %H:%M %Z}. It is in {worktree.path} on "
        f"{worktree.workspace.host}."
    )
    if found is None:
        yield f"What is in it could not be looked at: {problem}."
    else:
        words = found.in_words()
        yield (
            f"It has work that is nowhere else: {'; '.join(words)}."
            if words
            else "It has nothing that is not somewhere else too."
        )
        if size := found.size_in_words():
            yield f"It takes {size}."
    days = settings.ACW_ARCHIVE_RETENTION.days
    yield (
        f"All of it but what can be made again will be archived, and can be restored for {days} days; its branch stays. To "
        "have it otherwise, go to its page, or use the command line: "
        f"`worktree keep {worktree.pk}` keeps it for 30 days, `worktree pin {worktree.pk}` for good, "
        f"`worktree archive {worktree.pk}` archives and removes it now. Acquiring it keeps it too."
    )
