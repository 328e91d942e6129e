"""What the jobs about archives do; :mod:`workspaces.handlers` imports this."""

from __future__ import annotations

from jobs.context import JobContext
from jobs.exceptions import Permanent
from jobs.models import Priority
from jobs.registry import job_handler
from workspaces.archiving import restoring
from workspaces.exceptions import ArchiveError, ConfigTampered, WorktreeError
from workspaces.interruptions import interruptible
from workspaces.job_types import RESTORE, RestorePayload


@job_handler(RESTORE, priority=Priority.HIGH)
def restore_worktree(context: JobContext, payload: RestorePayload) -> None:
    """Restore one worktree, unless it is there already. What keeps it from that keeps every further attempt from it too."""
    with interruptible(context):
        try:
            restoring.restore(
                payload.worktree_id,
                actor=payload.actor,
                stop=lambda: context.should_stop,
            )
        except (ArchiveError, WorktreeError, ConfigTampered) as error:
            raise Permanent(str(error)) from error
