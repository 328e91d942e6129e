"""`manage.py quickstart`: what `make run` runs."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError

from acw.embedded.errors import ClusterError
from acw.quickstart import AddressError, Quickstart


class Command(BaseCommand):
    """Parses and wires; the work is in `acw.quickstart`."""

    help = (
        "Start everything in the foreground: the database, migrations, an admin user, a"
        " demo workspace, the web server and the worker. For trying ACW out. Exit"
        " status: 0 after Ctrl-C or SIGTERM, 1 when something could not start or died."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--host", default="127.0.0.1", help="where to listen (default: 127.0.0.1)"
        )
        parser.add_argument(
            "--port", type=_port, default=8000, help="which port (default: 8000)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        run = Quickstart(host=options["host"], port=options["port"], say=self._say)
        try:
            status = run.run()
        except (AddressError, ClusterError, OperationalError) as error:
            raise CommandError(str(error)) from error
        if status:
            sys.exit(status)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no port; accepted: a number from 1 to 65535"
        )
    return int(text)
