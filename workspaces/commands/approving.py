"""`workspace approve`: what agents have written into a clone's configuration is accepted, or looked at."""

from __future__ import annotations

import argparse

from django.core.management.base import BaseCommand

from jobs.command_line import Options, Verb, actor
from jobs.tables import print_json, print_table
from workspaces import clones, hosts, paths, seal
from workspaces.commands.verb import add_json, name_argument
from workspaces.repository import Repository

_HEADERS = ("FILE", "KEY", "VALUE")


def _arguments(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    parser.add_argument(
        "--list", action="store_true", help="only show what is not approved"
    )
    add_json(parser)


def _approve(command: BaseCommand, options: Options) -> None:
    workspace = clones.find(options["name"])
    clones.check_ready(workspace)
    if options["list"]:
        hosts.check(workspace)
        repository = Repository(paths.own_directory(workspace))
        found = seal.planted(workspace, repository)
        nothing = "nothing is there that is not approved"
    else:
        found = seal.approve(workspace, actor=actor())
        nothing = "nothing was there to approve"
    if options["json"]:
        print_json(command.stdout, [one.as_data() for one in found])
        return
    rows = [(one.where, one.key, one.value) for one in found]
    print_table(command.stdout, _HEADERS, rows, empty=nothing)


APPROVE = Verb(
    name="approve",
    help="accept the keys that its clone's configuration has now and that could run commands or lead git elsewhere",
    add_arguments=_arguments,
    run=_approve,
)
