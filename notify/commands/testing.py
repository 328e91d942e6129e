"""`webhook test`."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import Options, Verb, actor
from notify import audit, sending
from notify.commands.verb import endpoint_named, name_argument
from notify.models import WebhookAttempt


def _run(command: BaseCommand, options: Options) -> None:
    endpoint = endpoint_named(options["name"])
    attempt, judgement = sending.send_test(endpoint)
    audit.record(
        actor(),
        "webhook.test_sent",
        target=f"webhook:{endpoint.name}",
        data={"target": endpoint.target, "verdict": judgement.verdict.value},
    )
    if attempt.verdict != WebhookAttempt.Verdict.COMPLETED:
        raise CommandError(sending.describe(attempt), returncode=1)
    command.stdout.write(sending.describe(attempt))


TEST = Verb(
    name="test",
    help="send a signed test event now; exit status 1 when it is not delivered",
    add_arguments=name_argument,
    run=_run,
)
