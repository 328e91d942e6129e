"""``manage.py webhook``: webhook endpoints, without a browser."""

from __future__ import annotations

import sys
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from jobs.command_line import OperatorCommand, actor
from jobs.tables import print_json, print_table
from notify import audit, endpoints, sending, signing
from notify.exceptions import NotifyError
from notify.models import WebhookAttempt, WebhookEndpoint

_COLUMNS = ("name", "target", "enabled", "topics", "last_delivered", "last_attempt")


class Command(OperatorCommand):
    help = "List webhook endpoints, add one, or send one a test event."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(
            dest="verb", required=True, metavar="list|add|test"
        )

        listing = verbs.add_parser("list", help="list the endpoints")
        listing.add_argument("--json", action="store_true", help="as JSON, for scripts")

        adding = verbs.add_parser("add", help="add an endpoint")
        adding.add_argument("name", metavar="NAME")
        adding.add_argument("url", metavar="URL")
        adding.add_argument(
            "--topics",
            default="",
            metavar="A,B",
            help="the events that it gets, with commas between them",
        )
        adding.add_argument(
            "--secret-stdin",
            action="store_true",
            help="read the signing secret from standard input; without this one is made and printed once",
        )

        testing = verbs.add_parser(
            "test",
            help="send a signed test event now; exit status 1 when it is not delivered",
        )
        testing.add_argument("name", metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        verb = {"list": self._list, "add": self._add, "test": self._test}[
            options["verb"]
        ]
        verb(options)

    def _list(self, options: dict[str, Any]) -> None:
        rows = [_row(endpoint) for endpoint in WebhookEndpoint.objects.with_health()]
        if options["json"]:
            print_json(self.stdout, rows)
            return
        print_table(
            self.stdout,
            [name.replace("_", " ") for name in _COLUMNS],
            [[*row.values()] for row in rows],
            empty="no webhook endpoints; add one with: webhook add NAME URL --topics A,B",
        )

    def _add(self, options: dict[str, Any]) -> None:
        given = options["secret_stdin"]
        secret = sys.stdin.readline() if given else signing.new_secret()
        try:
            endpoint = endpoints.add(
                options["name"],
                options["url"],
                topic_names=[
                    name.strip()
                    for name in options["topics"].split(",")
                    if name.strip()
                ],
                secret=secret,
                actor=actor(),
            )
        except NotifyError as error:
            raise CommandError(str(error), returncode=2) from None
        except ValidationError as error:
            raise CommandError(" ".join(error.messages), returncode=2) from None
        self.stdout.write(f"Added {endpoint.name}: {endpoint.target}")
        if not given:
            self.stdout.write(f"Secret, shown this once: {secret}")
        if not endpoint.topics:
            self.stdout.write("It has no topics yet, and gets no events.")

    def _test(self, options: dict[str, Any]) -> None:
        endpoint = WebhookEndpoint.objects.filter(name=options["name"]).first()
        if endpoint is None:
            known = (
                ", ".join(WebhookEndpoint.objects.values_list("name", flat=True))
                or "none"
            )
            raise CommandError(
                f"there is no endpoint {options['name']!r}; there are: {known}",
                returncode=2,
            )
        attempt, judgement = sending.send_test(endpoint)
        audit.record(
            actor(),
            "webhook.test_sent",
            target=f"webhook:{endpoint.name}",
            data={"target": endpoint.target, "verdict": judgement.verdict.value},
        )
        if attempt.verdict != WebhookAttempt.Verdict.COMPLETED:
            raise CommandError(sending.describe(attempt), returncode=1)
        self.stdout.write(sending.describe(attempt))


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
