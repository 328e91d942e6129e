"""``manage.py webhook``: webhook endpoints, without a browser."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from jobs.command_line import OperatorCommand
from notify.commands.adding import ADD
from notify.commands.checking import DOCTOR
from notify.commands.listing import LIST
from notify.commands.recovering import RECOVER
from notify.commands.resending import RESEND
from notify.commands.rotating import ABANDON, PROMOTE, RETIRE, ROTATE
from notify.commands.switching import DISABLE, ENABLE, RESUME
from notify.commands.testing import TEST

VERBS = {
    verb.name: verb
    for verb in (
        LIST,
        ADD,
        TEST,
        DOCTOR,
        ENABLE,
        DISABLE,
        RESUME,
        RESEND,
        RECOVER,
        ROTATE,
        PROMOTE,
        RETIRE,
        ABANDON,
    )
}


class Command(OperatorCommand):
    help = "Webhook endpoints: list, add, test and switch them, change their secrets, and send what died again."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(
            dest="verb", required=True, metavar="|".join(VERBS)
        )
        for verb in VERBS.values():
            verb.add_arguments(verbs.add_parser(verb.name, help=verb.help))

    def handle(self, *args: Any, **options: Any) -> None:
        VERBS[options["verb"]].run(self, options)
