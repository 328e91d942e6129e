"""`worktree keep`, `worktree pin`, `worktree unpin` and `worktree archive`."""

from __future__ import annotations

import argparse
import datetime as dt

from django.core.management.base import BaseCommand

from jobs.command_line import Options, Verb, actor
from jobs.tables import print_json
from workspaces import keeping, prune
from workspaces.commands.listing import as_json
from workspaces.commands.verb import add_json, id_argument
from workspaces.models import Worktree


def _arguments(parser: argparse.ArgumentParser) -> None:
    id_argument(parser)
    add_json(parser)


def _keep_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments(parser)
    parser.add_argument(
        "--days",
        metavar="N",
        type=int,
        default=keeping.KEEP_FOR.days,
        help=f"for so many days from now on (default: {keeping.KEEP_FOR.days})",
    )


def _keep(command: BaseCommand, options: Options) -> None:
    most = dt.timedelta.max.days
    days = max(-most, min(options["days"], most))
    worktree = keeping.keep(
        options["id"], actor=actor(), duration=dt.timedelta(days=days)
    )
    until = f"{worktree.kept_until:%Y-%m-%d %H:%M %Z}"
    _say(command, options, worktree, f"not pruned before {until}")


def _pin(command: BaseCommand, options: Options) -> None:
    worktree = keeping.pin(options["id"], actor=actor())
    _say(command, options, worktree, "not pruned until it is unpinned")


def _unpin(command: BaseCommand, options: Options) -> None:
    worktree = keeping.unpin(options["id"], actor=actor())
    _say(command, options, worktree, "pruned like any other again")


def _say(command: BaseCommand, options: Options, worktree: Worktree, done: str) -> None:
    if options["json"]:
        print_json(command.stdout, as_json(worktree))
    else:
        command.stdout.write(f"{worktree.pk}: {done}")


def _archive_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments(parser)
    parser.add_argument(
        "--now",
        action="store_true",
        help="here and in the foreground, instead of by a worker of its host",
    )


def _archive(command: BaseCommand, options: Options) -> None:
    key = options["id"]
    archive = None
    if options["now"]:
        archive = prune.archive_worktree(key, actor=actor())
        done = (
            "removed; nothing was left of it to archive"
            if archive is None
            else f"removed; it is in archive {archive.pk}, restorable until {archive.expires_at:%Y-%m-%d %H:%M %Z}"
        )
    else:
        worktree = keeping.archive_now(key, actor=actor())
        done = f"a worker of {worktree.workspace.host} will archive and remove it"
    if options["json"]:
        facts = {
            "worktree_id": key,
            "removed": options["now"],
            "archive_id": None if archive is None else archive.pk,
            "restorable_until": None if archive is None else archive.expires_at,
        }
        print_json(command.stdout, facts)
    else:
        command.stdout.write(f"{key}: {done}")


KEEP = Verb(
    name="keep",
    help="not to be pruned for some time",
    add_arguments=_keep_arguments,
    run=_keep,
)
PIN = Verb(
    name="pin", help="not to be pruned at all", add_arguments=_arguments, run=_pin
)
UNPIN = Verb(
    name="unpin",
    help="to be pruned like any other again",
    add_arguments=_arguments,
    run=_unpin,
)
ARCHIVE = Verb(
    name="archive",
    help="have it archived and removed now; nobody may hold it",
    add_arguments=_archive_arguments,
    run=_archive,
)
