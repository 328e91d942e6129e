"""`webhook resend`."""

from __future__ import annotations

import argparse
import uuid

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb, actor
from notify.resending import resend


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", type=_job_id, nargs="+", metavar="JOB_ID")


def _job_id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"a delivery is named by its job's ID, a UUID, got {text!r}"
        ) from None


def _run(command: BaseCommand, options: Options) -> None:
    result = resend(options["ids"], actor=actor())
    if not result.done:
        raise CommandError(str(result))
    command.stdout.write(str(result))


RESEND = Verb(
    name="resend",
    help="send dead or completed deliveries again: the same event id, the same bytes",
    add_arguments=_add_arguments,
    run=_run,
)
