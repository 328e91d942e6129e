"""The periodic runners ``workspace_fetch``, ``worktree_prune`` and ``attachment_cleanup``.

A tick enumerates and enqueues; the work is done by jobs, each on the host on whose disk it is.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import chain, islice

from django.conf import settings

from jobs.enqueue import NewJob, enqueue_many
from jobs.models import WorkerProcess
from jobs.registry import Summary, runner
from workspaces import hosts, job_types, prune
from workspaces.fetching.fetch_schedule import REFUSALS
from workspaces.models import Attachment, Workspace, Worktree
from workspaces.pruning import forecast, warn
from workspaces.storing import storage
from workspaces.upkeep import runners  # noqa: F401 (registers its runners)

_BATCH = 500


@runner("workspace_fetch")
def workspace_fetch(stop: threading.Event) -> Summary:
    """Have each idle workspace fetched that is due before the next tick, when it is due: one job for those of one remote.

    Clones that were asked for and are not made, and that no job makes any more, are taken up as well.
    """
    clones = Workspace.objects.cloning()
    return {
        "enqueued": _enqueue(map(_fetch_job, Workspace.objects.to_fetch()), stop),
        "clones": _enqueue(map(job_types.clone, clones), stop),
    }


def _fetch_job(workspace: Workspace) -> NewJob:
    # A refused one is looked at: something may have changed since.
    parked = workspace.fetch_problem in REFUSALS
    return job_types.fetch_when_due(
        workspace, run_at=None if parked else workspace.next_fetch_at
    )


@runner("worktree_prune", dry_run=forecast.lines)
def worktree_prune(stop: threading.Event) -> Summary:
    """Warn of worktrees that will be due soon, and have those pruned that are due."""
    warned, left = warn.warn_idle(stop)
    # What an interrupted creation or removal has left is put right by the same job.
    unfinished = Worktree.objects.unfinished()
    found = (prune.due() | unfinished).select_related("workspace").order_by("pk")
    return {
        "warned": warned,
        "enqueued": _enqueue(map(job_types.prune, chain(left, found)), stop),
    }


@runner("attachment_cleanup")
def attachment_cleanup(stop: threading.Event) -> Summary:
    """Have each host clean up its attachments, or one of them the storage that all reach."""
    if not storage.home():
        return {"enqueued": _enqueue([job_types.clean_up("")], stop)}
    retention = settings.JOBS_ATTACHMENT_CLEANUP_RETENTION
    expired = Attachment.objects.of_deleted(retention) | Attachment.objects.orphaned(
        retention
    )
    # Also hosts without an expired row: they may have files without one.
    names = {
        hosts.this_host(),
        *expired.order_by().values_list("host", flat=True).distinct(),
        *WorkerProcess.objects.values_list("host", flat=True),
    }
    return {
        "enqueued": _enqueue((job_types.clean_up(host) for host in sorted(names)), stop)
    }


def _enqueue(jobs: Iterable[NewJob], stop: threading.Event) -> int:
    """Enqueue them in batches and return how many; those that are live already are not doubled."""
    count = 0
    remaining = iter(jobs)
    while not stop.is_set() and (batch := list(islice(remaining, _BATCH))):
        enqueue_many(batch)
        count += len(batch)
    return count
