"""`manage.py jobs torture`: the queue's promises, tried on the operator's own server."""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from acw.scratch.errors import ScratchError
from acw.scratch.interruption import cleaning_up_on_signals
from acw.scratch.schema import configured_server
from acw.torture import preflight, report
from acw.torture.errors import TortureError
from acw.torture.run import Plan, Result, run
from acw.torture.scratch import Scratch, scratch_schema
from jobs.command_line import positive, up_to

_LARGEST_SEED = 2**31
_MOST_WORKERS = 16
_LONGEST = 24 * 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--minutes",
        type=_minutes,
        default=Plan.seconds / 60,
        metavar="N",
        help=f"how long faults happen (default: {Plan.seconds / 60:g})",
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=Plan.jobs,
        metavar="N",
        help=f"how many come in meanwhile (default: {Plan.jobs:,})",
    )
    parser.add_argument(
        "--workers",
        type=up_to(_MOST_WORKERS),
        default=Plan.workers,
        metavar="N",
        help=f"processes, each of {Plan.threads} threads (default: {Plan.workers})",
    )
    parser.add_argument(
        "--seed",
        type=positive,
        metavar="N",
        help="chooses the faults and the jobs (default: a new one, which is printed)",
    )


def torture(command: BaseCommand, options: dict[str, Any]) -> None:
    """Do it, and raise CommandError where a promise was broken."""
    plan = Plan(
        seed=options["seed"] or 1 + secrets.randbelow(_LARGEST_SEED),
        jobs=options["jobs"],
        seconds=options["minutes"] * 60,
        workers=options["workers"],
    )

    def say(text: str) -> None:
        command.stderr.write(text, style_func=str)
        command.stderr.flush()

    with cleaning_up_on_signals(), _refusals_as_errors():
        server = configured_server()
        preflight.check(server, workers=plan.workers, threads=plan.threads)
        with scratch_schema(server) as scratch:
            result = _run(scratch, plan, say)
            report.print_result(command.stdout, result)
            if result.violations:
                scratch.keep()
                raise CommandError(
                    f"{len(result.violations)} promise(s) broken with the seed {plan.seed}. The evidence is kept: the"
                    f" schema {scratch.schema}, which DROP SCHEMA … CASCADE removes, and the logs in {scratch.directory}"
                )


def _run(scratch: Scratch, plan: Plan, say: Any) -> Result:
    try:
        return run(scratch, plan, say=say)
    except TortureError as error:
        scratch.keep()
        raise TortureError(
            f"{error}\nThe evidence is kept: the schema {scratch.schema} and the directory {scratch.directory}"
        ) from error


@contextmanager
def _refusals_as_errors() -> Iterator[None]:
    try:
        yield
    except (TortureError, ScratchError) as error:
        raise CommandError(str(error)) from error


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= _LONGEST:
        raise argparse.ArgumentTypeError(
            f"must be a number of minutes above 0, and at most {_LONGEST:g}, got {text!r}"
        )
    return minutes
