"""What the jobs of upkeep do; :mod:`workspaces.handlers` imports this."""

from __future__ import annotations

from jobs.context import JobContext
from jobs.models import Priority
from jobs.registry import job_handler
from workspaces import hosts
from workspaces.interruptions import interruptible
from workspaces.job_types import (
    MAINTAIN,
    RECONCILE,
    MaintainPayload,
    ReconcilePayload,
)
from workspaces.models import Workspace
from workspaces.upkeep import maintenance, reconcile


@job_handler(RECONCILE)
def reconcile_host(context: JobContext, payload: ReconcilePayload) -> None:
    """Compare this host's workspaces with its disk."""
    with interruptible(context):
        hosts.check_host(payload.host)
        reconcile.reconcile(stop=lambda: context.should_stop)


@job_handler(MAINTAIN, priority=Priority.LOW)
def maintain_workspace(context: JobContext, payload: MaintainPayload) -> None:
    """See to the workspace's clone. What goes wrong is recorded with it; the next try is the next night's."""
    ready = Workspace.objects.filter(
        pk=payload.workspace_id, state=Workspace.State.READY
    )
    workspace = ready.first()
    if workspace is not None:
        with interruptible(context):
            maintenance.maintain(workspace, stop=lambda: context.should_stop)
