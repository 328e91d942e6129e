"""What the jobs of this app do. Each reads afresh what it is about, and does nothing where that has moved on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.context import JobContext
from jobs.exceptions import Permanent, Snooze
from jobs.registry import job_handler
from workspaces import cleanup, fetch_rows, hosts, prune
from workspaces.exceptions import GitStopped, RepositoryBusy, WrongHost
from workspaces.fetch import fetch_workspace
from workspaces.job_types import (
    CLEAN_UP,
    FETCH,
    PRUNE,
    CleanUpPayload,
    FetchPayload,
    PrunePayload,
)

BUSY_DELAY = dt.timedelta(seconds=30)


@job_handler(FETCH)
def fetch(context: JobContext, payload: FetchPayload) -> None:
    """Fetch one workspace, if it is still idle.

    A fetch that fails completes the job: the failure is recorded with the workspace and told, and
    the next try is the next tick's. Retries on top of those would only ask a remote that is down more often,
    and leave a dead job for each outage. The attempts are for what else may happen, such as
    a worker that is killed.
    """
    workspace = fetch_rows.find_idle(payload.workspace_id)
    if workspace is not None:
        with _interruptible(context):
            fetch_workspace(
                workspace, timeout=context.remaining, stop=lambda: context.should_stop
            )


@job_handler(PRUNE)
def prune_worktree(context: JobContext, payload: PrunePayload) -> None:
    """Prune one worktree, if it is still due."""
    with _interruptible(context):
        prune.prune_worktree(payload.worktree_id, stop=lambda: context.should_stop)


@job_handler(CLEAN_UP)
def clean_up(context: JobContext, payload: CleanUpPayload) -> None:
    """Remove the attachments on this host's disk that nobody needs any more."""
    if payload.host != hosts.this_host():
        raise Permanent(
            f"the job is for host {payload.host!r}, and this is {hosts.this_host()!r}"
        )
    with _interruptible(context):
        cleanup.clean_up(stop=lambda: context.should_stop)
    if context.should_stop:  # it may have ended early
        context.check_lease()
        raise Snooze(dt.timedelta(0), "the worker stops")


@contextmanager
def _interruptible(context: JobContext) -> Iterator[None]:
    """What the work's own exceptions mean to the queue."""
    try:
        yield
    except RepositoryBusy as error:
        raise Snooze(BUSY_DELAY, str(error)) from error
    except GitStopped as error:
        context.check_lease()
        # The worker is going down: the next one begins anew, and no attempt is used up.
        raise Snooze(dt.timedelta(0), str(error)) from error
    except WrongHost as error:
        raise Permanent(str(error)) from error
