"""``manage.py runjobs``: the worker, in the foreground, for a supervisor."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from jobs import arguments
from jobs.checks import WORKER
from jobs.command_line import positive, up_to
from jobs.concurrency import MOST_THREADS
from jobs.connection import UNAVAILABLE, Outage
from jobs.events import LogEvent
from jobs.exceptions import InvalidJob
from jobs.leaving import leave
from jobs.models import QUEUE_MAX_LENGTH
from jobs.process import Worker
from jobs.recycling import Limits, parse_size
from jobs.schema import unapplied_migrations

log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = (
        "Run the worker: takes jobs from the queue and ticks the periodic runners until SIGTERM, "
        "SIGINT or SIGHUP. Exit status: 0 after a clean stop, 1 when a part of it failed or too many threads hang, 3 when "
        "running handlers did not end within JOBS_SHUTDOWN_GRACE."
    )
    requires_system_checks = [WORKER]
    _owns_process = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--workers",
            type=up_to(MOST_THREADS),
            metavar="N",
            help="threads (default: JOBS_WORKERS)",
        )
        parser.add_argument(
            "--queues",
            type=_names,
            metavar="A,B",
            help="serve these queues only (default: all but those of other hosts)",
        )
        parser.add_argument(
            "--drain",
            action="store_true",
            help="end when nothing is due any more; runs no periodic runners",
        )
        parser.add_argument(
            "--max-jobs",
            type=positive,
            metavar="N",
            help="stop after about N jobs, for the supervisor to start a new process",
        )
        parser.add_argument(
            "--max-rss",
            type=_size,
            metavar="SIZE",
            help="the same once more memory than this is resident, such as 512MB",
        )

    def run_from_argv(self, argv: list[str]) -> None:
        """From the command line: then the process is ended as well, whatever hangs in it."""
        self._owns_process = True
        super().run_from_argv(argv)

    def check(self, *args: Any, **options: Any) -> None:
        """With the checks that load what only a worker calls, which other commands' checks leave out."""
        super().check(*args, **{"include_deployment_checks": True, **options})

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.JOBS_ENABLED:
            log.warning(LogEvent.MODULE_DISABLED, extra={"setting": "JOBS_ENABLED"})
            self.stdout.write(
                "JOBS_ENABLED is false: neither workers nor runners start."
            )
            return
        limits = Limits(max_jobs=options["max_jobs"], max_rss=options["max_rss"])
        self._wait_for_schema()
        if (reached := limits.reached(executed=0)) is not None:
            raise CommandError(
                f"--max-rss is {reached['max_rss'] / 1e6:.0f} MB, and this process has {reached['rss'] / 1e6:.0f} MB "
                "resident before its first job: it would be replaced again and again; give it more"
            )
        worker = Worker(
            threads=options["workers"],
            queues=options["queues"],
            drain=options["drain"],
            limits=limits,
        )
        status = worker.run()
        if self._owns_process:
            leave(status)
        sys.exit(status)

    def _wait_for_schema(self) -> None:
        """Wait for the database; refuse to work on tables that are not what this code expects."""
        outage = Outage("start")
        while True:
            try:
                missing = unapplied_migrations()
                break
            except UNAVAILABLE as error:
                connection.close()
                threading.Event().wait(outage.failed(error))
        outage.passed()
        if missing:
            raise CommandError(
                f"the database lacks {len(missing)} migrations ({missing[0]} …): run `manage.py migrate`"
            )


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("must name at least one queue")
    try:
        return [
            arguments.required_text("queue", name, QUEUE_MAX_LENGTH) for name in names
        ]
    except InvalidJob as refused:
        raise argparse.ArgumentTypeError(str(refused)) from None
