"""The job that makes a workspace's clone."""

from __future__ import annotations

import datetime as dt
import logging
import random

from django.db import transaction

from jobs.context import JobContext
from jobs.exceptions import Snooze
from jobs.registry import job_handler
from notify.dispatch import Event, dispatch
from notify.links import admin_page
from notify.recipients import owner_or_admins
from workspaces import cloning, topics
from workspaces.events import LogEvent
from workspaces.exceptions import (
    GitError,
    GitStopped,
    NameTaken,
    OutsideDataDirectory,
    RefusedUrl,
    RemoteBusy,
)
from workspaces.failures import Failure, classify
from workspaces.interruptions import interruptible
from workspaces.job_types import CLONE, ClonePayload
from workspaces.models import Workspace

log = logging.getLogger(__name__)

_PASSING = frozenset(
    {Failure.NETWORK, Failure.TIMEOUT, Failure.LOCK, Failure.DISK_FULL}
)
_FAILURES = (GitError, NameTaken, OutsideDataDirectory, RefusedUrl)
_SLOT_DELAY = dt.timedelta(seconds=1)


@job_handler(CLONE)
def clone(context: JobContext, payload: ClonePayload) -> None:
    """Make the clone, if it is still wanted.

    What may pass by itself is tried again by the queue. Anything else, and the last attempt, is recorded with the
    workspace and told, and completes the job.
    """
    workspace = Workspace.objects.cloning().filter(pk=payload.workspace_id).first()
    if workspace is None:
        return
    try:
        with interruptible(context):
            cloning.make(workspace, stop=lambda: context.should_stop)
    except RemoteBusy as error:
        delay = _SLOT_DELAY * random.uniform(1, 3)  # noqa: S311 (no secret)
        raise Snooze(delay, str(error)) from error
    except GitStopped:
        raise
    except _FAILURES as error:
        passing = not isinstance(error, NameTaken) and classify(error) in _PASSING
        again = passing and context.attempt < context.max_attempts
        if not record_failure(
            workspace.pk, classify(error), str(error), again=again, url=workspace.url
        ):
            said = f"workspace {workspace.name} was removed, or has another URL now"
            raise Snooze(dt.timedelta(0), said) from error
        if again:
            raise


def record_failure(
    workspace_id: int,
    failure: Failure,
    error: str,
    *,
    again: bool,
    url: str | None = None,
) -> bool:
    """Record why it is not cloned; ``again``: it is tried again, and told only when it is not.

    False, and nothing is recorded, where it is gone, cloned, or not of this ``url`` any more.
    """
    with transaction.atomic():
        rows = Workspace.objects.select_for_update(of=("self",)).select_related("owner")
        row = rows.filter(pk=workspace_id, state=Workspace.State.CLONING).first()
        if row is None or url not in (None, row.url):
            return False
        row.state = Workspace.State.CLONING if again else Workspace.State.FAILED
        row.clone_progress = "failed, and will be tried again" if again else ""
        row.last_fetch_error = error
        row.fetch_problem = failure
        row.save(
            update_fields=[
                "state",
                "clone_progress",
                "last_fetch_error",
                "fetch_problem",
            ]
        )
        if not again:
            dispatch(_event(row))
    log.warning(
        LogEvent.WORKSPACE_CLONE_FAILED,
        extra={
            "workspace_id": workspace_id,
            "workspace": row.name,
            "class": str(failure),
            "error": error,
        },
    )
    return True


def _event(workspace: Workspace) -> Event:
    return Event(
        topic=topics.CLONE_FAILED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Workspace {workspace.name} could not be cloned",
        body=(
            f"{workspace.last_fetch_error}\n\nWhen that is mended, have it fetched: it is cloned then. "
            f"Another URL: manage.py workspace set-url {workspace.name} URL"
        ),
        data={
            "url": admin_page(workspace),
            "workspace_id": workspace.pk,
            "workspace": workspace.name,
            "host": workspace.host,
            "remote": workspace.url,
            "class": workspace.fetch_problem,
            "error": workspace.last_fetch_error[-500:],
        },
    )
