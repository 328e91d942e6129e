"""What ACW adds to the commands of the apps below it."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand

from jobs.command_line import Verb, add_subcommand


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    # Here, since this module is loaded by every process, and what is run by none of them but this command's.
    from acw.torture import command

    command.add_arguments(parser)


def _torture(command: BaseCommand, options: dict[str, Any]) -> None:
    from acw.torture.command import torture

    torture(command, options)


add_subcommand(
    Verb(
        name="torture",
        help="kill, suspend and cut off workers in a schema of its own, and check the queue's promises",
        add_arguments=_add_arguments,
        run=_torture,
    )
)
