"""`webhook doctor`."""

from __future__ import annotations

import argparse
import sys

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb, actor
from jobs.tables import print_json, printable
from notify.checkup.report import Finding, Grade, Step
from notify.checkup.run import check_up
from notify.commands.verb import endpoint_named, name_argument
from notify.exceptions import CheckupRefused, NotifyError

_STYLES = {
    Grade.PASSED: "SUCCESS",
    Grade.WARNING: "WARNING",
    Grade.UNKNOWN: "WARNING",
    Grade.FAILED: "ERROR",
}
_GRADE_WIDTH = max(map(len, Grade))
_STEP_WIDTH = max(map(len, Step))


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    name_argument(parser)
    parser.add_argument("--json", action="store_true", help="as JSON, for scripts")


def _run(command: BaseCommand, options: Options) -> None:
    endpoint = endpoint_named(options["name"])
    try:
        report = check_up(endpoint, actor=actor())
    except CheckupRefused as error:
        raise CommandError(str(error), returncode=2) from None
    except NotifyError as error:
        raise CommandError(str(error), returncode=1) from None
    if options["json"]:
        print_json(command.stdout, report.as_json())
    else:
        for finding in report.findings:
            _print(command, finding)
        command.stdout.write(f"\n{printable(report.summary)}")
    if not report.ok:
        sys.exit(1)


def _print(command: BaseCommand, finding: Finding) -> None:
    style = getattr(command.style, _STYLES[finding.grade])
    grade = style(finding.grade.ljust(_GRADE_WIDTH))
    step = finding.step.ljust(_STEP_WIDTH)
    command.stdout.write(f"{grade}  {step}  {printable(finding.message)}")
    if finding.advice:
        indent = " " * (_GRADE_WIDTH + _STEP_WIDTH + 4)
        command.stdout.write(f"{indent}{printable(finding.advice)}")


DOCTOR = Verb(
    name="doctor",
    help="check a receiver up: what it accepts, and what it has to refuse; exit status 1 when something is wrong",
    add_arguments=_add_arguments,
    run=_run,
)
