"""`workspace fetch` and `workspace set-url`."""

from __future__ import annotations

import argparse

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb, actor
from notify import audit
from workspaces import actions, clones
from workspaces.commands.verb import name_argument
from workspaces.fetch import fetch_workspace
from workspaces.models import Workspace
from workspaces.upkeep.places import GONE, was_gone


def _fetch(command: BaseCommand, options: Options) -> None:
    workspace = clones.find(options["name"])
    if workspace.state != Workspace.State.READY:
        actions.fetch_soon([workspace], actor=actor())
        said = (
            f"{GONE}, and is looked for there; is the disk mounted?"
            if was_gone(workspace)
            else "is not cloned yet, and will be; `workspace show` says how far it is"
        )
        command.stdout.write(f"{workspace.name}: {said}")
        return
    audit.record(actor(), "workspace.fetch", target=f"workspace:{workspace.name}")
    fetched = fetch_workspace(workspace)
    if fetched.error:
        raise CommandError(f"{workspace.name}: {fetched.error}")
    branches = "branch" if fetched.changed == 1 else "branches"
    command.stdout.write(
        f"{workspace.name}: fetched, {fetched.changed} {branches} changed"
    )


def _set_url_arguments(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    parser.add_argument("url", metavar="URL")


def _set_url(command: BaseCommand, options: Options) -> None:
    workspace = clones.find(options["name"])
    actions.set_url(workspace, options["url"], actor=actor())
    command.stdout.write(f"{workspace.name}: will be fetched from there")


FETCH = Verb(
    name="fetch",
    help="fetch it now, in the foreground; exit status 1 when it fails",
    add_arguments=name_argument,
    run=_fetch,
)
SET_URL = Verb(
    name="set-url",
    help="give it another remote, and have it fetched from there",
    add_arguments=_set_url_arguments,
    run=_set_url,
)
