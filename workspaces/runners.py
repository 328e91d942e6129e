"""The periodic runners ``workspace_fetch``, ``worktree_prune`` and ``attachment_cleanup``.

A tick enumerates and enqueues; the work is done by jobs, each on the host on whose disk it is.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import islice

from django.conf import settings

from jobs.enqueue import NewJob, enqueue_many
from jobs.models import WorkerProcess
from jobs.registry import Summary, runner
from workspaces import hosts, job_types
from workspaces.models import Attachment, Workspace, Worktree
from workspaces.warn import warn_idle

_BATCH = 500


@runner("workspace_fetch")
def workspace_fetch(stop: threading.Event) -> Summary:
    """Have each idle workspace fetched; one whose last fetch has not ended is not fetched twice."""
    idle = Workspace.objects.idle().only("pk", "host").order_by("pk")
    return {
        "enqueued": _enqueue((job_types.fetch(workspace) for workspace in idle), stop)
    }


@runner("worktree_prune")
def worktree_prune(stop: threading.Event) -> Summary:
    """Warn of worktrees that will be due soon, and have those pruned that are due."""
    warned = warn_idle(stop)
    due = Worktree.objects.prunable(settings.JOBS_WORKTREE_PRUNE_IDLE_THRESHOLD)
    # What an interrupted creation or removal has left is put right by the same job.
    found = (
        (due | Worktree.objects.unfinished()).select_related("workspace").order_by("pk")
    )
    return {
        "warned": warned,
        "enqueued": _enqueue((job_types.prune(worktree) for worktree in found), stop),
    }


@runner("attachment_cleanup")
def attachment_cleanup(stop: threading.Event) -> Summary:
    """Have each host clean up its attachments."""
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
