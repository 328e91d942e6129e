"""`webhook rotate`, `promote`, `retire` and `abandon`: changing an endpoint's secret without one delivery refused."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb, actor
from notify import proving, rotation
from notify.commands.verb import (
    endpoint_named,
    given_secret,
    name_argument,
    print_secret,
)
from notify.exceptions import InvalidSecret, NotifyError


def _rotate_arguments(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    parser.add_argument(
        "--secret-stdin",
        action="store_true",
        help="read the new secret from standard input; without this one is made and printed once",
    )


def _rotate(command: BaseCommand, options: Options) -> None:
    endpoint = endpoint_named(options["name"])
    given = options["secret_stdin"]
    with _told():
        secret = rotation.stage(
            endpoint, given_secret() if given else None, actor=actor()
        )
    command.stdout.write(f"Staged: both secrets of {endpoint.name} sign from now on.")
    if not given:
        print_secret(command, secret)
    command.stdout.write(
        f"Give it to the receiver, and then: webhook promote {endpoint.name}"
    )


def _promote_arguments(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    parser.add_argument(
        "--without-proof",
        action="store_true",
        help="send no test event first; a receiver without the new secret is noticed all the same",
    )


def _promote(command: BaseCommand, options: Options) -> None:
    endpoint = endpoint_named(options["name"])
    with _told():
        proving.promote(endpoint, actor=actor(), without_proof=options["without_proof"])
    command.stdout.write(
        f"Promoted: the new secret of {endpoint.name} signs first. The old one signs too, until "
        f"{rotation.DELIVERIES_TO_RETIRE} deliveries have followed, or: webhook retire {endpoint.name}"
    )


def _retire(command: BaseCommand, options: Options) -> None:
    endpoint = endpoint_named(options["name"])
    with _told():
        rotation.retire(endpoint, actor=actor())
    command.stdout.write(f"Retired: only the new secret of {endpoint.name} signs.")


def _abandon(command: BaseCommand, options: Options) -> None:
    endpoint = endpoint_named(options["name"])
    with _told():
        rotation.abandon(endpoint, actor=actor())
    command.stdout.write(f"Abandoned: {endpoint.name} keeps the secret that it had.")


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """A secret that is refused is a wrong call; anything else is as things stand."""
    try:
        yield
    except NotifyError as error:
        wrong_call = isinstance(error, InvalidSecret)
        raise CommandError(str(error), returncode=2 if wrong_call else 1) from None


ROTATE = Verb(
    name="rotate",
    help="stage a new secret: from then on both sign",
    add_arguments=_rotate_arguments,
    run=_rotate,
)
PROMOTE = Verb(
    name="promote",
    help="see whether the receiver has the staged secret, and have it sign first; exit status 1 when it has not",
    add_arguments=_promote_arguments,
    run=_promote,
)
RETIRE = Verb(
    name="retire",
    help="have the old secret sign no more, without waiting for deliveries",
    add_arguments=name_argument,
    run=_retire,
)
ABANDON = Verb(
    name="abandon",
    help="take a staged secret back",
    add_arguments=name_argument,
    run=_abandon,
)
