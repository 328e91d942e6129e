"""The periodic runners ``workspace_reconcile`` and ``workspace_maintenance``; :mod:`workspaces.runners` imports this."""

from __future__ import annotations

import datetime as dt
import threading
from hashlib import sha256

from django.conf import settings
from django.db.models.functions import Now

from jobs.enqueue import NewJob, enqueue_many
from jobs.registry import Summary, runner
from workspaces import job_types
from workspaces.models import Workspace

LONGEST_SPREAD = dt.timedelta(hours=6)


@runner("workspace_reconcile")
def workspace_reconcile(stop: threading.Event) -> Summary:
    """Have each host that has workspaces compare them with its disk."""
    names = Workspace.objects.order_by("host").values_list("host", flat=True).distinct()
    jobs = [job_types.reconcile(host) for host in names]
    if stop.is_set():
        return {"enqueued": 0}
    enqueue_many(jobs)
    return {"enqueued": len(jobs)}


@runner("workspace_maintenance")
def workspace_maintenance(stop: threading.Event) -> Summary:
    """Have each clone seen to, at a time of its own within a quarter of the interval, so that disks are not busy at once."""
    ready = Workspace.objects.filter(state=Workspace.State.READY).order_by("pk")
    jobs = [_at_its_time(workspace) for workspace in ready.annotate(now=Now())]
    if stop.is_set():
        return {"enqueued": 0}
    enqueue_many(jobs)
    return {"enqueued": len(jobs)}


def _at_its_time(workspace: Workspace) -> NewJob:
    spread = min(settings.JOBS_WORKSPACE_MAINTENANCE_INTERVAL / 4, LONGEST_SPREAD)
    digest = sha256(workspace.name.encode()).digest()
    share = int.from_bytes(digest[:4], "big") / 2**32
    now: dt.datetime = workspace.now  # type: ignore[attr-defined] # annotated
    return job_types.maintain(workspace, run_at=now + spread * share)
