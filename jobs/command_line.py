"""What operators' commands have in common: who is acting, and errors in one line."""

from __future__ import annotations

import getpass
import os
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from jobs.display import first_line


def actor() -> str:
    """Who the audit names for what a command does: ``command line (<the system's user>)``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as containers have
        user = f"uid {os.getuid()}"
    return f"command line ({user})"


class OperatorCommand(BaseCommand):
    """A command whose errors are one line on stderr and an exit status: 1, or 2 for a wrong call.

    What the database raises becomes such a line too; ``--traceback`` shows where it came from.
    """

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except (Error, psycopg.Error) as error:
            reason = first_line(str(error), 300) or type(error).__name__
            raise CommandError(f"the database refused: {reason}") from error
