"""What verbs of `manage.py workspace` and `manage.py worktree` share: the command, and arguments."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobs.command_line import VerbsCommand
from jobs.tables import cell, printable
from workspaces.exceptions import WorkspacesError

_INTERRUPTED = 130


class WorkspacesCommand(VerbsCommand):
    """Verbs whose errors of this app are one line, and exit status 1; after Ctrl-C 130."""

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            super().handle(*args, **options)
        except WorkspacesError as error:
            raise CommandError(str(error)) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CommandError(refused_by_disk(error)) from error
        except KeyboardInterrupt:
            raise CommandError(
                "interrupted: what was begun is undone, or finished by the next call",
                returncode=_INTERRUPTED,
            ) from None


def refused_by_disk(error: OSError) -> str:
    """What the disk would not do, and where, in one line."""
    said = f"the disk refused: {error.strerror or type(error).__name__}"
    if not isinstance(error.filename, str | bytes):  # none, or an open one's number
        return said
    return f"{said}: {printable(os.fsdecode(error.filename))}"


def add_json(parser: argparse.ArgumentParser) -> None:
    """The flag ``--json``."""
    parser.add_argument("--json", action="store_true", help="as JSON, for scripts")


def print_facts(command: BaseCommand, facts: Mapping[str, object]) -> None:
    """Print one fact a line, without those that there are not."""
    for name, value in facts.items():
        if value not in (None, "", []):
            command.stdout.write(f"{name.replace('_', ' ')}: {cell(value)}")


def name_argument(parser: argparse.ArgumentParser) -> None:
    """The workspace's name, as the only argument."""
    parser.add_argument("name", metavar="NAME")


def id_argument(parser: argparse.ArgumentParser) -> None:
    """The worktree's id, as the only argument."""
    parser.add_argument("id", metavar="ID", type=int)
