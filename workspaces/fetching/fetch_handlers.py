"""The job that fetches the workspaces of a remote."""

from __future__ import annotations

import datetime as dt
import random

from django.conf import settings

from jobs.context import JobContext
from jobs.exceptions import Snooze
from jobs.registry import job_handler
from workspaces.exceptions import RemoteBusy
from workspaces.fetch import fetch_together
from workspaces.fetching import fetch_rows, fetch_schedule, remote_stamps
from workspaces.fetching.fetch_rows import Candidate
from workspaces.interruptions import interruptible
from workspaces.job_types import FETCH, FetchPayload

_SLOT_DELAY = dt.timedelta(seconds=1)


@job_handler(FETCH)
def fetch(context: JobContext, payload: FetchPayload) -> None:
    """Fetch one workspace, if it is still idle, and with it those of its remote that are due soon.

    A fetch that fails completes the job: the failure is recorded with the workspace and told, and
    the next try is when the row says. Retries on top of those would only ask a remote that is down more often,
    and leave a dead job for each outage. The attempts are for what else may happen, such as
    a worker that is killed.
    """
    soon = settings.JOBS_WORKSPACE_FETCH_INTERVAL / 2
    candidates = fetch_rows.find_idle(payload.workspace_id, soon=soon)
    if payload.when_due:
        candidates = _due(candidates)
    elif not any(c.workspace.pk == payload.workspace_id for c in candidates):
        candidates = []
    if not candidates:
        return
    try:
        with interruptible(context):
            fetched = fetch_together(
                candidates,
                timeout=context.remaining,
                stop=lambda: context.should_stop,
                # What several have come to would wait for as long as all of them take.
                may_wait=len(candidates) == 1,
            )
    except RemoteBusy as error:
        # Not all at the same moment.
        delay = _SLOT_DELAY * random.uniform(1, 3)  # noqa: S311 (no secret)
        raise Snooze(delay, str(error)) from error
    if any(one.again_soon for one in fetched):
        raise Snooze(fetch_schedule.LOCK_RETRY, "another git had a lock")


def _due(candidates: list[Candidate]) -> list[Candidate]:
    """All of them, where one is due, or refused and something has changed since; else none."""
    for candidate in candidates:
        workspace = candidate.workspace
        if candidate.is_due:
            return candidates
        if candidate.is_parked and workspace.remote_stamp != remote_stamps.of(
            workspace
        ):
            return candidates
    return []
