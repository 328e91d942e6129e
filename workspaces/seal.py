"""The seal on a clone's configuration: agents can write into it, and what they plant there is neither obeyed nor ignored.

Nothing works on a clone with keys that nobody approved, its people are told once, and everything goes on when
the keys are gone or an operator has approved them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from notify import audit
from notify.dispatch import Event, dispatch
from notify.recipients import owner_or_admins
from workspaces import hosts, paths, topics
from workspaces.events import LogEvent
from workspaces.exceptions import ConfigTampered
from workspaces.failures import Failure
from workspaces.models import Workspace
from workspaces.plumbing import planted as planted_keys
from workspaces.plumbing.planted import Planted
from workspaces.repository import Repository

log = logging.getLogger(__name__)

_NAMED = 5
# Where git took too long, it may have waited for a pipe; as long as that is not over, it is looked for.
_WAITED = frozenset({Failure.TIMEOUT, Failure.CONFIG_TAMPERED})

Entry = Mapping[str, str]
"""An entry of ``Workspace.approved_config`` and ``tampered_config``: where, key, value as it may be shown, digest."""


def planted(workspace: Workspace, repository: Repository) -> list[Planted]:
    """What the clone's configuration has that could run a command or lead git elsewhere, and is not approved."""
    found = _look(workspace, repository)
    if not found:
        return []
    known = {(entry["where"], entry["digest"]) for entry in workspace.approved_config}
    return [one for one in found if (one.where, one.digest) not in known or not one.key]


def _look(workspace: Workspace, repository: Repository) -> list[Planted]:
    at_objects = workspace.fetch_problem in _WAITED
    return planted_keys.look(repository.path, at_objects=at_objects)


def check(workspace: Workspace, repository: Repository) -> None:
    """Raise :class:`~workspaces.exceptions.ConfigTampered` where there is something planted; record and tell what is new.

    Where all is well again, that is recorded and told. Call it before whatever has git read the clone's own
    configuration, outside transactions that may be rolled back.
    """
    found = planted(workspace, repository)
    if not found and workspace.tampered_since is None:
        return
    # It may have been approved since the row was read.
    found = _recorded(workspace.pk, repository)
    if found:
        raise ConfigTampered(
            f"workspace {workspace.name}: {_in_words(found)} in {repository.path}, which could run commands or lead git "
            f"elsewhere: {_remedy(found, 'have it approved (`workspace approve`)')}"
        )


def approve(
    workspace: Workspace, *, actor: str, seen: Sequence[Entry] | None = None
) -> list[Planted]:
    """Approve exactly the keys and values that are there now, and return those that were not approved before.

    With ``seen``, what somebody was shown, only where it is still that. Raises
    :class:`~workspaces.exceptions.ConfigTampered` where it is not, or where files lead out of the clone, which cannot be
    approved, and ``WrongHost``.
    """
    hosts.check(workspace)
    repository = Repository(paths.own_directory(workspace))
    with transaction.atomic():
        row = Workspace.objects.select_for_update(of=("self",)).get(pk=workspace.pk)
        found = _look(row, repository)
        files = [one for one in found if not one.key]
        if files:
            raise ConfigTampered(
                f"workspace {row.name}: {_in_words(files)} in {repository.path} cannot be approved; remove it"
            )
        known = {(entry["where"], entry["digest"]) for entry in row.approved_config}
        new = [one for one in found if (one.where, one.digest) not in known]
        if seen is not None and [one.as_data() for one in new] != list(seen):
            raise ConfigTampered(
                f"workspace {row.name}: its clone's configuration has changed since it was looked at; look again"
            )
        Workspace.objects.filter(pk=row.pk).update(
            approved_config=[one.as_data() for one in found]
        )
        for one in new:
            audit.record(
                actor,
                "workspace.approve",
                target=f"workspace:{row.name}",
                data=one.as_data(),
            )
    _recorded(row.pk, repository)
    return new


def _recorded(workspace_id: int, repository: Repository) -> list[Planted]:
    """Look again, with the row locked, and bring it up to date; what is planted."""
    with transaction.atomic():
        row = (
            Workspace.objects.select_for_update(of=("self",))
            .select_related("owner")
            .filter(pk=workspace_id)
            .first()
        )
        if row is None:
            return []
        found = planted(row, repository)
        entries = [one.as_data() for one in found]
        grown = [one for one in entries if one not in row.tampered_config]
        if entries == row.tampered_config:
            return found
        turned = row.tampered_since is None
        Workspace.objects.filter(pk=row.pk).update(
            tampered_config=entries,
            tampered_since=(
                None if not found else Now() if turned else row.tampered_since
            ),
        )
        if grown:
            dispatch(_tampered_event(row, found))
        elif not found:
            dispatch(_cleared_event(row))
    facts: dict[str, Any] = {"workspace_id": workspace_id, "workspace": row.name}
    if grown:
        keys = [one.key or one.where for one in found]
        log.warning(LogEvent.WORKSPACE_CONFIG_TAMPERED, extra={**facts, "keys": keys})
    elif not found:
        log.info(LogEvent.WORKSPACE_CONFIG_CLEARED, extra=facts)
    return found


def _in_words(found: Sequence[Planted]) -> str:
    named = ", ".join(one.key or one.where for one in found[:_NAMED])
    return f"{named}, …" if len(found) > _NAMED else named


def _remedy(found: Sequence[Planted], approval: str) -> str:
    """What there is to do: a link, or a pipe that git would wait for, is never approved."""
    if any(not one.key for one in found):
        return "remove it (files, links and pipes cannot be approved)"
    return f"remove it, or {approval}"


def _lines(found: Iterable[Planted]) -> str:
    return "\n".join(str(one) for one in found)


def _tampered_event(workspace: Workspace, found: Sequence[Planted]) -> Event:
    return Event(
        topic=topics.CONFIG_TAMPERED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Workspace {workspace.name}: its clone's configuration was changed",
        body=(
            f"{_lines(found)}\n\nThis could run commands, or lead git elsewhere or have it wait. It was not obeyed, and the workspace "
            f"is neither fetched nor worked on until this is done in {workspace.path} on {workspace.host}: "
            + _remedy(
                found,
                f"have an operator approve it: manage.py workspace approve {workspace.name}",
            )
        ),
        data={
            **topics.about_workspace(workspace),
            "found": [one.as_data() for one in found],
        },
    )


def _cleared_event(workspace: Workspace) -> Event:
    return Event(
        topic=topics.CONFIG_CLEARED.name,
        recipients=owner_or_admins(workspace.owner),
        title=f"Workspace {workspace.name}: its clone's configuration is well again",
        body="What had been found is gone or approved. The workspace is fetched and worked on as before.",
        data=topics.about_workspace(workspace),
    )
