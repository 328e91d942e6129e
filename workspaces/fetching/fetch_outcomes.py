"""What is recorded of a fetch and told of it: failures when they begin, recoveries of what was told, a renamed default branch."""

from __future__ import annotations

import datetime as dt
import logging
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from notify.dispatch import Event, dispatch
from notify.recipients import owner_or_admins
from workspaces import topics
from workspaces.events import LogEvent
from workspaces.failures import Failure
from workspaces.fetching import fetch_rows, fetch_schedule, remote_stamps
from workspaces.models import Workspace

log = logging.getLogger(__name__)

TAIL = 500
"""Characters of an error that are told, from its end."""


def record_success(
    workspace: Workspace,
    *,
    default_branch: str,
    changed: int,
    next_in: dt.timedelta,
    may_wait: bool = False,
) -> None:
    """Record that it was fetched, and tell what has turned.

    ``may_wait``: the caller's job ends now, and what is recorded of a fetch after which nothing has turned may be written with that.
    """
    # Most often nothing has, and this is all.
    if default_branch == workspace.default_branch and fetch_rows.record_fetched(
        workspace, next_in=next_in, may_wait=may_wait
    ):
        recovered = False
    else:
        row = _record_turned(workspace, default_branch=default_branch, next_in=next_in)
        if row is None:
            return
        recovered = row.failing_since is not None
    facts = {"workspace_id": workspace.pk, "workspace": workspace.name}
    log.info(LogEvent.WORKSPACE_FETCHED, extra={**facts, "changed_branches": changed})
    if recovered:
        log.info(LogEvent.WORKSPACE_RECOVERED, extra=facts)


def _record_turned(
    workspace: Workspace, *, default_branch: str, next_in: dt.timedelta
) -> Workspace | None:
    """Record it where something may have turned; the row as it was, None where it is gone, or has another remote by now."""
    with transaction.atomic():
        row = _locked_row(workspace.pk)
        if row is None or row.url != workspace.url:
            return None
        Workspace.objects.filter(pk=row.pk).update(
            last_fetched_at=Now(),
            next_fetch_at=Now() + next_in,
            default_branch=default_branch,
            **_WELL,
        )
        if row.failure_told_at is not None:
            dispatch(_recovered_event(row))
        if row.default_branch and default_branch != row.default_branch:
            dispatch(_branch_event(row, default_branch))
    return row


def record_failure(workspace: Workspace, *, failure: Failure, error: str) -> int:
    """Record a failed fetch, when it is tried again, and tell its people where it is time; return the how many-th in a row it is.

    0, and nothing is recorded, where the row is gone, or has been given another remote meanwhile.
    """
    with transaction.atomic():
        row = _locked_row(workspace.pk)
        if row is None or row.url != workspace.url:
            return 0
        goes_on = row.failing_since is not None and fetch_schedule.are_alike(
            row.fetch_problem, failure
        )
        failures = row.fetch_failures + 1 if goes_on else 1
        next_in = fetch_schedule.after_failure(failure, failures)
        told = fetch_schedule.is_told(failure, failures) and (
            failure in fetch_schedule.REFUSALS or not _was_told_lately(row)
        )
        changes: dict[str, Any] = (
            {"failing_since": Now()} if not row.failing_since else {}
        )
        if told:
            changes["failure_told_at"] = Now()
        Workspace.objects.filter(pk=row.pk).update(
            next_fetch_at=Now() + next_in,
            fetch_problem=failure,
            fetch_failures=failures,
            last_fetch_error=error,
            remote_stamp=remote_stamps.of(row)
            if failure in fetch_schedule.REFUSALS
            else "",
            **changes,
        )
        if told:
            row.refresh_from_db(fields=_TOLD_FIELDS)
            dispatch(_failed_event(row))
    log.warning(
        LogEvent.WORKSPACE_FETCH_FAILED,
        extra={
            "workspace_id": row.pk,
            "workspace": row.name,
            "class": str(failure),
            "error": error,
        },
    )
    return failures


def _was_told_lately(row: Workspace) -> bool:
    """Whether people know that it fails: troubles that take turns are told once, and once a day. A refusal waits for somebody, and that long."""
    if row.failure_told_at is None:
        return False
    lately = Now() - fetch_schedule.PARKED
    return Workspace.objects.filter(pk=row.pk, failure_told_at__gt=lately).exists()


def record_upstreams(workspace: Workspace, *, gone: set[str], there: set[str]) -> None:
    """Record of its worktrees whose branch the remote has removed, and whose it has again."""
    worktrees = workspace.worktrees.all()
    if gone:
        worktrees.filter(branch__in=gone, upstream_gone_at=None).update(
            upstream_gone_at=Now()
        )
    if there:
        worktrees.filter(branch__in=there).exclude(upstream_gone_at=None).update(
            upstream_gone_at=None
        )


_WELL: dict[str, Any] = {
    "fetch_problem": "",
    "fetch_failures": 0,
    "failing_since": None,
    "failure_told_at": None,
    "last_fetch_error": "",
    "remote_stamp": "",
}
_TOLD_FIELDS = (
    "fetch_problem",
    "fetch_failures",
    "failing_since",
    "last_fetch_error",
    "next_fetch_at",
)


def _locked_row(workspace_id: int) -> Workspace | None:
    rows = Workspace.objects.select_for_update(of=("self",)).select_related("owner")
    return rows.filter(pk=workspace_id).first()


def _failed_event(workspace: Workspace) -> Event:
    error = workspace.last_fetch_error[-TAIL:]
    since, again = workspace.failing_since, workspace.next_fetch_at
    waits = (
        "It is tried again when the URL, this host's keys or settings change, when somebody has it fetched, and"
        if workspace.fetch_problem in fetch_schedule.REFUSALS
        else "It is tried again"
    )
    return Event(
        topic=topics.SYNC_FAILED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Workspace {workspace.name} cannot be fetched",
        body=(
            f"{error}\n\n{waits} at {again:%Y-%m-%d %H:%M %Z}; you are told when it works. "
            "Until then the workspace keeps what it had at the last fetch."
        ),
        data={
            **topics.about_workspace(workspace),
            "remote": workspace.url,
            "class": workspace.fetch_problem,
            "error": error,
            "first_failed_at": since.isoformat() if since else None,
            "attempts": workspace.fetch_failures,
            "next_attempt_at": again.isoformat(),
        },
    )


def _recovered_event(workspace: Workspace) -> Event:
    since = workspace.failing_since
    return Event(
        topic=topics.SYNC_RECOVERED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Workspace {workspace.name} is fetched again",
        body=f"It had been failing since {since:%Y-%m-%d %H:%M %Z}." if since else "",
        data={
            **topics.about_workspace(workspace),
            "failing_since": since.isoformat() if since else None,
            "class": workspace.fetch_problem,
        },
    )


def _branch_event(workspace: Workspace, branch: str) -> Event:
    now = f"is now {branch}" if branch else "is gone, and the remote names no other"
    begin = (
        f"New branches begin at {branch} from now on."
        if branch
        else "No new branch can be begun until the remote has one."
    )
    return Event(
        topic=topics.DEFAULT_BRANCH_CHANGED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Default branch of {workspace.name} {now}",
        body=f"It was {workspace.default_branch}. {begin} Worktrees stay as they are.",
        data={
            **topics.about_workspace(workspace),
            "before": workspace.default_branch,
            "default_branch": branch,
        },
    )
