"""``manage.py jobs``: look at jobs and mend them, without a browser."""

from __future__ import annotations

import argparse
import uuid
from typing import Any

from django.core.management.base import CommandError, CommandParser

from jobs import actions, reports, verbs
from jobs.action_result import Result
from jobs.command_line import OperatorCommand, actor, positive, subcommands
from jobs.models import Job, Status
from jobs.querysets import JobQuerySet

_LISTED = 50


class Command(OperatorCommand):
    help = (
        "List jobs, show one, retry, cancel or run them now. Exit status: 0 when it is done, or a running job was "
        "asked to stop, 1 when there is no such job or all were skipped, 2 for a wrong call."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(
            dest="verb",
            required=True,
            metavar="|".join(["list|show|retry|cancel|run-now|stats", *subcommands()]),
        )
        _add_list(verbs.add_parser("list", help="the newest jobs, newest first"))
        _add_show(verbs.add_parser("show", help="all that is known about one job"))
        _add_retry(
            verbs.add_parser("retry", help="make dead and cancelled jobs pending again")
        )
        for verb, text in (
            ("cancel", "cancel pending jobs, and ask running ones to stop"),
            ("run-now", "make pending jobs due now"),
        ):
            _add_ids(verbs.add_parser(verb, help=text), nargs="+")
        statistics = verbs.add_parser("stats", help="lag, counts, dead jobs, workers")
        statistics.add_argument(
            "--json", action="store_true", help="as JSON, for scripts"
        )
        for added in subcommands().values():
            added.add_arguments(verbs.add_parser(added.name, help=added.help))

    def handle(self, *args: Any, **options: Any) -> None:
        if (added := subcommands().get(options["verb"])) is not None:
            added.run(self, options)
            return
        verb = {
            "list": self._list,
            "show": self._show,
            "retry": self._retry,
            "cancel": self._cancel,
            "run-now": self._run_now,
            "stats": self._stats,
        }[options["verb"]]
        verb(options)

    def _list(self, options: dict[str, Any]) -> None:
        jobs = _matching(options).order_by("-pk")[: options["limit"]]
        reports.print_jobs(self.stdout, jobs, as_json=options["json"])

    def _show(self, options: dict[str, Any]) -> None:
        found = reports.print_job(self.stdout, options["id"], as_json=options["json"])
        if not found:
            raise CommandError(f"there is no job {options['id']}")

    def _retry(self, options: dict[str, Any]) -> None:
        ids, everything = options["ids"], options["all"]
        if bool(ids) == everything:
            raise CommandError("name jobs by ID, or --all --type T", returncode=2)
        if everything and not options["type"]:
            raise CommandError("--all needs --type T", returncode=2)
        if ids and (options["type"] or options["queue"] or options["error_contains"]):
            raise CommandError(
                "--type, --queue and --error-contains go with --all", returncode=2
            )
        chosen = _matching({**options, "status": [Status.DEAD]}) if everything else ids
        self._report(actions.retry(chosen, actor=actor()))

    def _cancel(self, options: dict[str, Any]) -> None:
        self._report(actions.cancel(options["ids"], actor=actor()))

    def _run_now(self, options: dict[str, Any]) -> None:
        self._report(actions.run_now(options["ids"], actor=actor()))

    def _stats(self, options: dict[str, Any]) -> None:
        reports.print_stats(self.stdout, as_json=options["json"])

    def _report(self, result: Result) -> None:
        missing = [skip for skip in result.skipped if skip.reason == verbs.NO_SUCH_JOB]
        if missing or (result.skipped and not (result.done or result.asked)):
            raise CommandError(str(result))
        self.stdout.write(str(result))


def _matching(options: dict[str, Any]) -> JobQuerySet:
    jobs = Job.objects.all()
    if options.get("status"):
        jobs = jobs.filter(status__in=options["status"])
    if options.get("type"):
        jobs = jobs.filter(type=options["type"])
    if options.get("queue"):
        jobs = jobs.filter(queue=options["queue"])
    if options.get("ref_id"):
        jobs = jobs.filter(ref_id=options["ref_id"])
    if options.get("error_contains"):
        jobs = jobs.filter(last_error__contains=options["error_contains"])
    return jobs


def _add_list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--status",
        action="append",
        choices=Status.values,
        metavar="STATUS",
        help=f"only these ({', '.join(Status.values)}); may be given again",
    )
    parser.add_argument("--type", metavar="T", help="only of this type")
    parser.add_argument("--queue", metavar="Q", help="only in this queue")
    parser.add_argument("--ref-id", metavar="REF", help="only about this row")
    parser.add_argument(
        "--limit",
        type=positive,
        default=_LISTED,
        metavar="N",
        help=f"at most so many (default: {_LISTED})",
    )
    parser.add_argument("--json", action="store_true", help="as JSON, for scripts")


def _add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=_job_id, metavar="ID")
    parser.add_argument("--json", action="store_true", help="as JSON, for scripts")


def _add_retry(parser: argparse.ArgumentParser) -> None:
    _add_ids(parser, nargs="*")
    parser.add_argument(
        "--all",
        action="store_true",
        help="every dead job that the options below fit, cancelled ones not; needs --type",
    )
    parser.add_argument("--type", metavar="T", help="with --all: of this type")
    parser.add_argument("--queue", metavar="Q", help="with --all: in this queue")
    parser.add_argument(
        "--error-contains",
        metavar="TEXT",
        help="with --all: whose last error has TEXT in it",
    )


def _add_ids(parser: argparse.ArgumentParser, *, nargs: str) -> None:
    parser.add_argument("ids", type=_job_id, nargs=nargs, metavar="ID")


def _job_id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"a job's ID is a UUID, got {text!r}"
        ) from None
