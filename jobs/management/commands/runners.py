"""``manage.py runners``: the periodic runners, without a browser."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.core.management.base import CommandError, CommandParser

from jobs import registry, runner_actions, stats
from jobs.command_line import OperatorCommand, actor
from jobs.display import duration, first_line, summary
from jobs.models import RunnerState
from jobs.outcomes import describe
from jobs.registry import Runner
from jobs.stats import RunnerStatus
from jobs.tables import print_json, print_table, printable


class Command(OperatorCommand):
    help = "List the periodic runners with their schedule, or have one tick now."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="list|run")

        listing = verbs.add_parser("list", help="each with its last and next tick")
        listing.add_argument("--json", action="store_true", help="as JSON, for scripts")

        running = verbs.add_parser(
            "run",
            help="one tick now, in the foreground, also of one that is switched off; exit status 1 when it fails",
        )
        running.add_argument("name", metavar="NAME")
        running.add_argument(
            "--dry-run",
            action="store_true",
            help="only print what a tick would do now; exit status 2 where the runner cannot say",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["verb"] == "list":
            self._list(as_json=options["json"])
        else:
            self._run(options["name"], dry=options["dry_run"])

    def _list(self, *, as_json: bool) -> None:
        statuses = stats.runners()
        if as_json:
            print_json(self.stdout, [_as_json(status) for status in statuses])
            return
        print_table(self.stdout, _HEADERS, map(_row, statuses), empty="no runners")

    def _run(self, name: str, *, dry: bool) -> None:
        runner = registry.runners().get(name)
        if runner is None:
            known = ", ".join(sorted(registry.runners()))
            raise CommandError(f"there is no runner {name!r}; there are: {known}")
        if dry:
            self._foretell(runner)
            return
        try:
            counts = runner_actions.run_here(runner, actor=actor())
        except (
            Exception
        ) as error:  # whatever the runner raises; it is recorded and logged
            raise CommandError(f"{name} failed: {describe(error)}") from error
        self.stdout.write(f"{name}: {summary(counts) or 'done'}")

    def _foretell(self, runner: Runner) -> None:
        if runner.dry_run is None:
            able = [name for name, one in registry.runners().items() if one.dry_run]
            raise CommandError(
                f"{runner.name} cannot say what it would do; these can: {', '.join(sorted(able)) or 'none'}",
                returncode=2,
            )
        for line in runner_actions.foretell(runner):
            self.stdout.write(printable(line))


_HEADERS = ("NAME", "ENABLED", "EVERY", "NEXT", "LAST", "OUTCOME", "TOOK", "SUMMARY")


def _row(status: RunnerStatus) -> tuple[object, ...]:
    failed = status.last_outcome == RunnerState.Outcome.FAILED
    return (
        status.name,
        status.enabled,
        duration(status.interval),
        f"overdue by {duration(status.late)}" if status.overdue else status.next_run_at,
        status.last_started_at or "never",
        status.last_outcome,
        duration(status.took),
        first_line(status.last_error) if failed else summary(status.last_summary),
    )


def _as_json(status: RunnerStatus) -> dict[str, Any]:
    return {**dataclasses.asdict(status), "overdue": status.overdue}
