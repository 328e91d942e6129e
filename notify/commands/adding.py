"""`webhook add`."""

from __future__ import annotations

import argparse
import sys

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import actor
from notify import endpoints, signing
from notify.commands.verb import Options, Verb
from notify.exceptions import NotifyError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("url", metavar="URL")
    parser.add_argument(
        "--topics",
        default="",
        metavar="A,B",
        help="the events that it gets, with commas between them",
    )
    parser.add_argument(
        "--secret-stdin",
        action="store_true",
        help="read the signing secret from standard input; without this one is made and printed once",
    )


def _run(command: BaseCommand, options: Options) -> None:
    given = options["secret_stdin"]
    secret = sys.stdin.readline() if given else signing.new_secret()
    try:
        endpoint = endpoints.add(
            options["name"],
            options["url"],
            topic_names=[
                name.strip() for name in options["topics"].split(",") if name.strip()
            ],
            secret=secret,
            actor=actor(),
        )
    except NotifyError as error:
        raise CommandError(str(error), returncode=2) from None
    except ValidationError as error:
        raise CommandError(" ".join(error.messages), returncode=2) from None
    command.stdout.write(f"Added {endpoint.name}: {endpoint.target}")
    if not given:
        command.stdout.write(f"Secret, shown this once: {secret}")
    if not endpoint.topics:
        command.stdout.write("It has no topics yet, and gets no events.")


ADD = Verb(name="add", help="add an endpoint", add_arguments=_add_arguments, run=_run)
