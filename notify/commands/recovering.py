"""`webhook recover`."""

from __future__ import annotations

import argparse
import datetime as dt
import sys

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb, actor
from jobs.display import duration
from jobs.tables import cell, print_table
from notify.commands.verb import endpoint_named, name_argument
from notify.exceptions import RecoveryRefused
from notify.models import WebhookEndpoint
from notify.models.delivery import MOST_PER_MINUTE
from notify.recovering import since, steering

_SHOWN = 10
_COLUMNS = (
    "id",
    "state",
    "since",
    "counted",
    "resent",
    "skipped",
    "per_minute",
    "requested_by",
    "reason",
)
_TURNS = {
    "pause": steering.pause,
    "resume": steering.resume,
    "cancel": steering.cancel,
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--since",
        type=_since,
        metavar="2h|TIME",
        help="resend what died since then; without it, list the recoveries there are",
    )
    for turn in _TURNS:
        what.add_argument(
            f"--{turn}",
            dest="turn",
            action="store_const",
            const=turn,
            help=f"{turn} the recovery of this endpoint",
        )
    parser.add_argument(
        "--per-minute",
        type=_pace,
        default=steering.PER_MINUTE,
        metavar="N",
        help=f"the pace (default: %(default)s, at most {MOST_PER_MINUTE})",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say how many")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _since(text: str) -> dt.datetime | dt.timedelta:
    try:
        return since.parse_since(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _pace(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_PER_MINUTE:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 1 to {MOST_PER_MINUTE}, got {text!r}"
        )
    return int(text)


def _run(command: BaseCommand, options: Options) -> None:
    endpoint = endpoint_named(options["name"])
    if options["turn"]:
        _turn(command, endpoint, options["turn"])
    elif options["since"] is None:
        _list(command, endpoint)
    else:
        _begin(command, endpoint, options)


def _begin(command: BaseCommand, endpoint: WebhookEndpoint, options: Options) -> None:
    pace: int = options["per_minute"]
    counted = steering.scope(endpoint, options["since"])
    takes = dt.timedelta(minutes=1) * counted.count / pace
    command.stdout.write(
        f"{counted.count:,} dead since {cell(counted.since)} for {endpoint.name}; "
        f"{pace} a minute take {duration(takes)}"
    )
    if options["dry_run"]:
        return
    if counted.count and not options["yes"] and not _agreed():
        raise CommandError("nothing was resent")
    try:
        recovery = steering.begin(endpoint, counted, actor=actor(), per_minute=pace)
    except RecoveryRefused as error:
        raise CommandError(str(error)) from None
    command.stdout.write(
        f"Recovery {recovery.pk} has begun; look at it with: webhook recover {endpoint.name}"
    )


def _agreed() -> bool:
    """Whoever is not at a terminal cannot be asked; whoever ends the input there, instead of answering, says no."""
    if sys.stdin is None or not sys.stdin.isatty():
        return True
    try:
        answer = input("Resend them? [y/N] ")
    except EOFError:
        return False
    return answer.strip().lower() in {"y", "yes"}


def _turn(command: BaseCommand, endpoint: WebhookEndpoint, turn: str) -> None:
    live = endpoint.recoveries.filter(state__in=steering.LIVE)
    ids = list(live.values_list("pk", flat=True))
    if not ids:
        raise CommandError(f"no recovery of {endpoint.name} is running or paused")
    result = _TURNS[turn](ids, actor=actor())
    if not result.done:
        raise CommandError(str(result))
    command.stdout.write(str(result))


def _list(command: BaseCommand, endpoint: WebhookEndpoint) -> None:
    newest = endpoint.recoveries.order_by("-pk")[:_SHOWN]
    print_table(
        command.stdout,
        [name.replace("_", " ") for name in _COLUMNS],
        list(newest.values_list(*_COLUMNS)),
        empty=f"no recovery of {endpoint.name}; begin one with: webhook recover {endpoint.name} --since 2h",
    )


RECOVER = Verb(
    name="recover",
    help="resend all that died for an endpoint since a time, at a pace; pause, resume and cancel that",
    add_arguments=_add_arguments,
    run=_run,
)
