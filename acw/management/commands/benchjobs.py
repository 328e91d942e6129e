"""`manage.py benchjobs`: how fast the queue is here, beside what plain SQL makes of the same table."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import CommandError, CommandParser

from acw.benchmark import report
from acw.benchmark.errors import BenchmarkError
from acw.benchmark.figures import Figure
from acw.benchmark.measurements import (
    MEASUREMENTS,
    ROUNDS,
    ROWS,
    ROWS_SHORT,
    Extent,
)
from acw.benchmark.scratch import Scratch, scratch_schema
from acw.scratch.errors import ScratchError
from acw.scratch.interruption import cleaning_up_on_signals
from jobs.command_line import OperatorCommand, positive


class Command(OperatorCommand):
    """Parses, wires and prints; what is measured is in `acw.benchmark`."""

    help = (
        "Measure the queue in the configured database, in a schema of its own that is dropped at the end: each figure"
        " is printed as a ratio to what bounds it, measured in the same run. It loads the server. Exit status: 0; 1"
        " when something could not be measured or jobs were lost; 2 for a wrong call."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--only",
            type=_names,
            default=list(MEASUREMENTS),
            metavar="A,B",
            help=f"measure these only: {', '.join(MEASUREMENTS)}",
        )
        parser.add_argument(
            "--rounds",
            type=positive,
            metavar="N",
            help=f"how often each pair takes turns (default: {ROUNDS}, short: 1)",
        )
        parser.add_argument(
            "--short",
            action="store_true",
            help="small numbers, for about a minute in all; the ratios are rough",
        )
        parser.add_argument(
            "--rows",
            type=positive,
            metavar="N",
            help=f"rows of the large tables, jobs of the memory test (default: {ROWS:,}, short: {ROWS_SHORT:,})",
        )
        parser.add_argument("--json", action="store_true", help="as JSON, for scripts")

    def handle(self, *args: Any, **options: Any) -> None:
        short = options["short"]
        extent = Extent(
            rounds=options["rounds"] or (1 if short else ROUNDS),
            rows=options["rows"] or (ROWS_SHORT if short else ROWS),
            short=short,
        )
        with (
            cleaning_up_on_signals(),
            _refusals_as_errors(),
            scratch_schema() as scratch,
        ):
            with scratch.connect() as connection:
                conditions = report.conditions(connection)
            figures, refused = self._measure(scratch, options["only"], extent)
        if options["json"]:
            report.print_as_json(self.stdout, conditions, figures, refused=refused)
        else:
            report.print_text(self.stdout, conditions, figures)
        if refused:
            raise CommandError(
                f"no figure for {', '.join(refused)}, see above", returncode=1
            )

    def _measure(
        self, scratch: Scratch, names: list[str], extent: Extent
    ) -> tuple[list[Figure], dict[str, str]]:
        figures: list[Figure] = []
        refused: dict[str, str] = {}
        for number, name in enumerate(names, start=1):
            self._say(f"[{number}/{len(names)}] {name}")
            try:
                scratch.reset()
                figures += MEASUREMENTS[name](scratch, extent)
            except BenchmarkError as error:
                refused[name] = str(error)
                self._say(self.style.ERROR(f"REFUSED {name}: {error}"))
        return figures, refused

    def _say(self, text: str) -> None:
        self.stderr.write(text, style_func=str)
        self.stderr.flush()


@contextmanager
def _refusals_as_errors() -> Iterator[None]:
    try:
        yield
    except (BenchmarkError, ScratchError) as error:
        raise CommandError(str(error)) from error


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(
            f"there is no measurement {', '.join(map(repr, unknown)) or 'in it'};"
            f" there are {', '.join(MEASUREMENTS)}"
        )
    return list(dict.fromkeys(names))
