"""`webhook list`."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from jobs.tables import print_json, print_table
from notify.commands.verb import Options, Verb
from notify.models import WebhookEndpoint

_COLUMNS = ("name", "target", "enabled", "topics", "last_delivered", "last_attempt")


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
        [[*row.values()] for row in rows],
        empty="no webhook endpoints; add one with: webhook add NAME URL --topics A,B",
    )


def _row(endpoint: WebhookEndpoint) -> dict[str, Any]:
    values = (
        endpoint.name,
        endpoint.target,
        endpoint.enabled,
        ",".join(endpoint.topics),
        endpoint.delivered_at,
        endpoint.last_verdict,
    )
    return dict(zip(_COLUMNS, values, strict=True))


LIST = Verb(
    name="list", help="list the endpoints", add_arguments=_add_arguments, run=_run
)
