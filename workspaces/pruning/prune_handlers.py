"""The jobs that prune worktrees, or archive them because somebody asked for it."""

from __future__ import annotations

import contextlib

from jobs.context import JobContext
from jobs.registry import job_handler
from workspaces import prune
from workspaces.exceptions import ConfigTampered, WorktreeError
from workspaces.interruptions import interruptible
from workspaces.job_types import ARCHIVE, PRUNE, ArchivePayload, PrunePayload
from workspaces.pruning import warn


@job_handler(PRUNE)
def prune_worktree(context: JobContext, payload: PrunePayload) -> None:
    """Warn of one worktree, or prune it, if either is still due.

    One whose restoration was interrupted waits for its clone's configuration to be approved, which people are told of.
    """
    with interruptible(context), contextlib.suppress(ConfigTampered):
        warn.warn_worktree(payload.worktree_id, stop=lambda: context.should_stop)
        prune.prune_worktree(payload.worktree_id, stop=lambda: context.should_stop)


@job_handler(ARCHIVE)
def archive_worktree(context: JobContext, payload: ArchivePayload) -> None:
    """Archive and remove one worktree, if it still may be.

    What keeps it is told to its people, and completes the job: they have to do something about it.
    """
    # Held, kept, pinned, restored or gone since: nothing is to be done any more.
    with (
        interruptible(context),
        contextlib.suppress(WorktreeError, *prune.KEPT_BECAUSE),
    ):
        prune.archive_worktree(
            payload.worktree_id,
            actor=payload.actor,
            as_of=payload.as_of,
            stop=lambda: context.should_stop,
        )
