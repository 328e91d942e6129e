"""Fetching one workspace, and telling when that begins to fail and when it works again."""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import dataclass

from django.db import transaction
from django.db.models.functions import Now

from notify.dispatch import Event, dispatch
from notify.links import admin_page
from notify.recipients import owner_or_admins
from workspaces import fetch_rows, hosts, paths, remotes, topics
from workspaces.events import LogEvent
from workspaces.exceptions import (
    CloneMissing,
    GitError,
    GitStopped,
    OutsideDataDirectory,
    RefusedUrl,
)
from workspaces.models import Workspace
from workspaces.repository import Repository, Stop

log = logging.getLogger(__name__)

LOCK_WAIT = dt.timedelta(seconds=10)

_FAILURES = (GitError, CloneMissing, OutsideDataDirectory, RefusedUrl)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """``changed``: how many of the remote's branches came, moved or went; ``error``: "" or why it failed."""

    changed: int = 0
    error: str = ""


def fetch_workspace(
    workspace: Workspace,
    *,
    timeout: dt.timedelta | None = None,
    stop: Stop | None = None,
) -> Fetched:
    """Fetch the workspace's remote now and record how it went; a failure is returned, not raised.

    Takes ``timeout`` at most (and at most ``ACW_GIT_TIMEOUT``) for each git command. Fetching is no use of
    the worktrees. Raises :class:`~workspaces.exceptions.RepositoryBusy` where another fetch does not
    end soon, ``GitStopped`` when ``stop`` says so, and ``WrongHost``; none of these is recorded.
    """
    hosts.check(workspace)
    try:
        changed, default_branch = _fetch(workspace, timeout=timeout, stop=stop)
    except GitStopped:
        raise
    except _FAILURES as error:
        _record_failure(workspace.pk, str(error))
        return Fetched(error=str(error))
    _record_success(workspace, default_branch=default_branch, changed=changed)
    return Fetched(changed=changed)


def _fetch(
    workspace: Workspace, *, timeout: dt.timedelta | None, stop: Stop | None
) -> tuple[int, str]:
    remotes.parse(workspace.url)  # what is allowed may have changed since it was added
    repository = Repository(paths.own_directory(workspace))
    with repository.locked_for_fetch(wait=LOCK_WAIT, stop=stop):
        changed = repository.fetch(workspace.url, timeout=timeout, stop=stop)
        default_branch = workspace.default_branch
        # Renamed or deleted on the remote, or it was empty until now.
        if not default_branch or not repository.has_remote_branch(default_branch):
            default_branch = repository.find_default_branch(
                workspace.url, timeout=timeout, stop=stop
            )
    return changed, default_branch


def _locked_row(workspace_id: int) -> Workspace | None:
    rows = Workspace.objects.select_for_update(of=("self",)).select_related("owner")
    return rows.filter(pk=workspace_id).first()


def _record_failure(workspace_id: int, error: str) -> None:
    with transaction.atomic():
        workspace = _locked_row(workspace_id)
        if workspace is None:
            return
        turned = workspace.failing_since is None
        changes = {"failing_since": Now()} if turned else {}
        Workspace.objects.filter(pk=workspace_id).update(
            last_fetch_error=error, **changes
        )
        if turned:
            dispatch(_failed_event(workspace, error))
    log.warning(
        LogEvent.WORKSPACE_FETCH_FAILED,
        extra={
            "workspace_id": workspace_id,
            "workspace": workspace.name,
            "error": error,
        },
    )


def _record_success(workspace: Workspace, *, default_branch: str, changed: int) -> None:
    # Most often nothing has turned, and this is all.
    recorded = fetch_rows.record_fetched(workspace.pk, default_branch=default_branch)
    recovered = not recorded and _record_recovery(
        workspace.pk, default_branch=default_branch
    )
    if not (recorded or recovered):
        return
    facts = {"workspace_id": workspace.pk, "workspace": workspace.name}
    log.info(LogEvent.WORKSPACE_FETCHED, extra={**facts, "changed_branches": changed})
    if recovered:
        log.info(LogEvent.WORKSPACE_RECOVERED, extra=facts)


def _record_recovery(workspace_id: int, *, default_branch: str) -> bool:
    """Record that it is fetched again and tell; False where the row is gone."""
    with transaction.atomic():
        workspace = _locked_row(workspace_id)
        if workspace is None:
            return False
        Workspace.objects.filter(pk=workspace_id).update(
            last_fetched_at=Now(),
            failing_since=None,
            last_fetch_error="",
            default_branch=default_branch,
        )
        if workspace.failing_since is not None:
            dispatch(_recovered_event(workspace, workspace.failing_since))
    return True


def _failed_event(workspace: Workspace, error: str) -> Event:
    return Event(
        topic=topics.SYNC_FAILED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Workspace {workspace.name} cannot be fetched",
        body=(
            f"{error}\n\nIt is tried again at every interval; you are told when it works. "
            "Until then the workspace keeps what it had at the last fetch."
        ),
        data={
            "url": admin_page(workspace),
            "workspace_id": workspace.pk,
            "workspace": workspace.name,
            "host": workspace.host,
            "remote": workspace.url,
            "error": error,
        },
    )


def _recovered_event(workspace: Workspace, since: dt.datetime) -> Event:
    return Event(
        topic=topics.SYNC_RECOVERED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Workspace {workspace.name} is fetched again",
        body=f"It had been failing since {since:%Y-%m-%d %H:%M %Z}.",
        data={
            "url": admin_page(workspace),
            "workspace_id": workspace.pk,
            "workspace": workspace.name,
            "host": workspace.host,
            "failing_since": since.isoformat(),
        },
    )
