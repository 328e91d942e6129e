"""`workspace remove`."""

from __future__ import annotations

import argparse

from django.core.management.base import BaseCommand

from jobs.command_line import Options, Verb, actor
from notify import audit
from workspaces import clones
from workspaces.commands.verb import name_argument


def _arguments(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    parser.add_argument(
        "--discard-work",
        action="store_true",
        help="also with changes, commits and archives that are nowhere else",
    )


def _remove(command: BaseCommand, options: Options) -> None:
    workspace = clones.find(options["name"])
    discard_work = options["discard_work"]
    clones.remove_workspace(workspace, discard_work=discard_work, actor=actor())
    audit.record(
        actor(),
        "workspace.remove",
        target=f"workspace:{workspace.name}",
        data={"discard_work": discard_work},
    )
    command.stdout.write(f"{workspace.name}: removed")


REMOVE = Verb(
    name="remove",
    help="remove its rows, its worktrees and its clone",
    add_arguments=_arguments,
    run=_remove,
)
