"""What the jobs of this app do. Each reads afresh what it is about, and does nothing where that has moved on."""

from __future__ import annotations

import datetime as dt

from jobs.context import JobContext
from jobs.exceptions import Permanent, Snooze
from jobs.registry import job_handler
from workspaces import clone_handlers  # noqa: F401 (registers its handler)
from workspaces.archiving import handlers as _archiving  # noqa: F401 (likewise)
from workspaces.fetching import fetch_handlers  # noqa: F401 (likewise)
from workspaces.interruptions import interruptible
from workspaces.job_types import (
    CLEAN_UP,
    CleanUpPayload,
)
from workspaces.pruning import prune_handlers  # noqa: F401 (likewise)
from workspaces.storing import cleanup, storage
from workspaces.upkeep import handlers as _upkeep  # noqa: F401 (likewise)


@job_handler(CLEAN_UP)
def clean_up(context: JobContext, payload: CleanUpPayload) -> None:
    """Remove the attachments in the storage that this host reaches that nobody needs any more."""
    if payload.host != storage.home():
        raise Permanent(
            f"the job is for the attachments of host {payload.host!r}, and this one reaches those of "
            f"{storage.home()!r} (ACW_HOST, ACW_ATTACHMENT_STORAGE)"
        )
    with interruptible(context):
        cleanup.clean_up(stop=lambda: context.should_stop)
    if context.should_stop:  # it may have ended early
        context.check_lease()
        raise Snooze(dt.timedelta(0), "the worker stops")
