"""`workspace list` and `workspace show`."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from jobs.command_line import Options, Verb
from jobs.redaction import redact
from jobs.tables import print_json, print_table
from workspaces import clones
from workspaces.commands.verb import add_json, name_argument, print_facts
from workspaces.fetching.explanations import next_fetch_why
from workspaces.models import Workspace
from workspaces.upkeep.sizes import in_words

_HEADERS = (
    "NAME",
    "HOST",
    "STATE",
    "REMOTE",
    "BRANCH",
    "OWNER",
    "FRESH SINCE",
    "NEXT FETCH",
    "WHY THEN",
    "FAILING SINCE",
    "SIZE",
    "SIZED AT",
    "PATH",
)


def _list(command: BaseCommand, options: Options) -> None:
    workspaces = Workspace.objects.with_holds().select_related("owner")
    if options["json"]:
        print_json(command.stdout, [as_json(workspace) for workspace in workspaces])
        return
    print_table(command.stdout, _HEADERS, map(_row, workspaces), empty="no workspaces")


def _row(workspace: Any) -> tuple[object, ...]:
    return (
        workspace.name,
        workspace.host,
        workspace.state,
        redact(workspace.url),
        workspace.default_branch,
        workspace.owner.get_username() if workspace.owner else None,
        workspace.last_fetched_at,
        _next_fetch(workspace),
        next_fetch_why(workspace, is_held=workspace.is_held),
        workspace.failing_since,
        None if workspace.size_bytes is None else in_words(workspace.size_bytes),
        workspace.sized_at,
        workspace.path,
    )


def _next_fetch(workspace: Workspace) -> object:
    ready = workspace.state == Workspace.State.READY
    return workspace.next_fetch_at if ready else None


def _show(command: BaseCommand, options: Options) -> None:
    found = clones.find(options["name"])
    shown = as_json(Workspace.objects.with_holds().get(pk=found.pk))
    if options["json"]:
        print_json(command.stdout, shown)
    else:
        print_facts(command, shown)


def as_json(workspace: Any) -> dict[str, object]:
    """What scripts are told of a workspace, which :meth:`with_holds` has found."""
    return {
        "id": workspace.pk,
        "name": workspace.name,
        "host": workspace.host,
        "state": workspace.state,
        "clone_progress": workspace.clone_progress,
        "remote": redact(workspace.url),
        "path": workspace.path,
        "default_branch": workspace.default_branch,
        "owner": workspace.owner.get_username() if workspace.owner else None,
        "last_fetched_at": workspace.last_fetched_at,
        "next_fetch_at": _next_fetch(workspace),
        "next_fetch_why": next_fetch_why(workspace, is_held=workspace.is_held),
        "failing_since": workspace.failing_since,
        "fetch_problem": workspace.fetch_problem,
        "fetch_failures": workspace.fetch_failures,
        "last_fetch_error": workspace.last_fetch_error,
        "tampered_since": workspace.tampered_since,
        "tampered_keys": [entry["key"] for entry in workspace.tampered_config],
        "size_bytes": workspace.size_bytes,
        "sized_at": workspace.sized_at,
        "maintained_at": workspace.maintained_at,
        "maintenance_error": workspace.maintenance_error,
    }


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    add_json(parser)


LIST = Verb(
    name="list",
    help="all workspaces, of every host",
    add_arguments=add_json,
    run=_list,
)
SHOW = Verb(
    name="show",
    help="all that is known of one",
    add_arguments=_show_arguments,
    run=_show,
)
