"""`webhook list`."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from jobs.command_line import Options, Verb
from jobs.tables import print_json, print_table, printable
from notify import standing
from notify.models import WebhookEndpoint

_COLUMNS = (
    "name",
    "target",
    "state",
    "topics",
    "last_delivered",
    "last_attempt",
    "failing_since",
    "in_flight",
    "waiting",
    "oldest_waiting",
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON, for scripts")


def _run(command: BaseCommand, options: Options) -> None:
    rows = [_row(endpoint) for endpoint in WebhookEndpoint.objects.with_health()]
    if options["json"]:
        print_json(command.stdout, rows)
        return
    print_table(
        command.stdout,
        [name.replace("_", " ") for name in _COLUMNS],
        [[row[name] for name in _COLUMNS] for row in rows],
        empty="no webhook endpoints; add one with: webhook add NAME URL --topics A,B",
    )
    for row in rows:
        if row["reason"]:
            command.stdout.write(
                printable(f"{row['name']} is {row['state']}: {row['reason']}")
            )


def _row(endpoint: WebhookEndpoint) -> dict[str, Any]:
    return {
        "name": endpoint.name,
        "target": endpoint.target,
        "enabled": endpoint.enabled,
        "state": standing.word(endpoint),
        "reason": standing.reason(endpoint),
        "next_try": endpoint.breaker_until,
        "topics": endpoint.topics,
        "last_delivered": endpoint.delivered_at,
        "last_attempt": endpoint.last_verdict,
        "failing_since": endpoint.failing_since,
        "in_flight": endpoint.in_flight,
        "waiting": endpoint.waiting,
        "oldest_waiting": endpoint.waiting_since,
    }


LIST = Verb(
    name="list",
    help="list the endpoints and how they fare",
    add_arguments=_add_arguments,
    run=_run,
)
