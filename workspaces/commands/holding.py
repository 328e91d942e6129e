"""`worktree acquire`, `worktree heartbeat` and `worktree release`."""

from __future__ import annotations

import argparse
import socket

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb, actor, duration
from jobs.tables import print_json
from workspaces import actions, clones, holds
from workspaces.archiving import lookup
from workspaces.commands.listing import as_json
from workspaces.commands.verb import add_json, id_argument
from workspaces.models import Workspace, Worktree


def _acquire_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workspace", metavar="WORKSPACE")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--branch",
        metavar="B",
        help="of this branch (default: the one that the holder used last, or a new branch)",
    )
    which.add_argument(
        "--id",
        metavar="ID",
        type=int,
        help="this very worktree; one that was pruned is restored",
    )
    parser.add_argument(
        "--holder",
        metavar="H",
        help="who holds it (default: this system's user and host)",
    )
    _lease_argument(parser, default="ACW_WORKTREE_LEASE")
    add_json(parser)


def _lease_argument(parser: argparse.ArgumentParser, *, default: str) -> None:
    parser.add_argument(
        "--lease",
        metavar="2h",
        type=duration,
        help=f"how long it stays held without a heartbeat (default: {default})",
    )


def _acquire(command: BaseCommand, options: Options) -> None:
    workspace = clones.find(options["workspace"])
    holder = options["holder"]
    if holder is None:
        holder = f"{actor()} on {socket.gethostname()}"
    if options["id"] is not None:
        _check_workspace(workspace, options["id"])
        worktree = holds.acquire_again(
            options["id"], holder=holder, lease=options["lease"]
        )
    else:
        worktree = holds.acquire(
            workspace, branch=options["branch"], holder=holder, lease=options["lease"]
        )
    if options["json"]:
        print_json(command.stdout, as_json(worktree))
    else:
        command.stdout.write(f"{worktree.pk}\t{worktree.path}")


def _check_workspace(workspace: Workspace, worktree_id: int) -> None:
    rows = Worktree.objects.select_related("workspace")
    found = rows.filter(pk=worktree_id).first() or lookup.required(worktree_id)
    if found.workspace != workspace:
        raise CommandError(
            f"worktree {worktree_id} is of workspace {found.workspace.name}, not of {workspace.name}"
        )


def _heartbeat_arguments(parser: argparse.ArgumentParser) -> None:
    id_argument(parser)
    _fencing_argument(parser, required=True)
    _lease_argument(parser, default="what it was acquired for")
    add_json(parser)


def _fencing_argument(
    parser: argparse.ArgumentParser, *, required: bool = False
) -> None:
    parser.add_argument(
        "--fencing",
        metavar="N",
        type=int,
        required=required,
        help="which hold: the fencing_no that `acquire --json` says; exit status 1 where that one is over",
    )


def _heartbeat(command: BaseCommand, options: Options) -> None:
    worktree = holds.heartbeat(
        options["id"], fencing_no=options["fencing"], lease=options["lease"]
    )
    if options["json"]:
        print_json(command.stdout, as_json(worktree))
        return
    until = worktree.lease_expires_at
    said = (
        "until it is released"
        if until is None
        else f"until {until:%Y-%m-%d %H:%M:%S %Z}"
    )
    command.stdout.write(f"{worktree.pk}: held {said}")


def _release_arguments(parser: argparse.ArgumentParser) -> None:
    id_argument(parser)
    parser.add_argument("--holder", metavar="H", help="only where this one holds it")
    _fencing_argument(parser)
    add_json(parser)


def _release(command: BaseCommand, options: Options) -> None:
    worktree, was_held = actions.release_once(
        options["id"],
        actor=actor(),
        holder=options["holder"],
        fencing_no=options["fencing"],
    )
    if options["json"]:
        print_json(command.stdout, {**as_json(worktree), "was_held": was_held})
        return
    said = "released" if was_held else "was released already"
    command.stdout.write(f"{worktree.pk}: {said}")


ACQUIRE = Verb(
    name="acquire",
    help="hold a worktree; prints its id and its path, with a tab between",
    add_arguments=_acquire_arguments,
    run=_acquire,
)
HEARTBEAT = Verb(
    name="heartbeat",
    help="say that it is still worked in, before its lease runs out",
    add_arguments=_heartbeat_arguments,
    run=_heartbeat,
)
RELEASE = Verb(
    name="release",
    help="let it go",
    add_arguments=_release_arguments,
    run=_release,
)
