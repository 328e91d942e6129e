"""`webhook enable`, `disable` and `resume`."""

from __future__ import annotations

from collections.abc import Callable

from django.core.management.base import BaseCommand

from jobs.command_line import Options, Verb, actor
from notify.commands.verb import endpoint_named, name_argument
from notify.health import switching


def _verb(
    name: str,
    *,
    help: str,  # noqa: A002 (a verb's field)
    switch: Callable[..., bool],
    done: str,
    idle: str,
) -> Verb:
    def run(command: BaseCommand, options: Options) -> None:
        endpoint = endpoint_named(options["name"])
        changed = switch(endpoint, actor=actor())
        command.stdout.write(f"{endpoint.name} {done if changed else idle}")

    return Verb(name=name, help=help, add_arguments=name_argument, run=run)


ENABLE = _verb(
    "enable",
    help="have deliveries sent to it again, those that wait too",
    switch=switching.enable,
    done="is enabled",
    idle="was enabled already",
)
DISABLE = _verb(
    "disable",
    help="have nothing sent to it; what is waiting for it waits on",
    switch=switching.disable,
    done="is disabled",
    idle="was disabled already",
)
RESUME = _verb(
    "resume",
    help="try a receiver again now, without waiting for its breaker",
    switch=switching.resume,
    done="is tried again now",
    idle="has nothing to resume: it is disabled, or its breaker is closed",
)
