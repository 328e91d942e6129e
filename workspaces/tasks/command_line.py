"""What ``manage.py task`` and ``manage.py agent`` have in common: who acts, arguments, and errors as text or JSON."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from jobs.command_line import OperatorCommand
from jobs.durations import ACCEPTED, parse_duration
from jobs.redaction import redact
from jobs.tables import print_json, printable
from workspaces.exceptions import WorkspacesError
from workspaces.tasks import agents
from workspaces.tasks.actors import Actor, acting, operating
from workspaces.tasks.exceptions import InvalidTask, TasksError
from workspaces.tasks.models import Agent
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.sockets import SocketError

OPERATE = "tasks.operate_task"
STDIN = "-"
LONGEST_INPUT = 1_000_000
"""Characters that are read of the standard input; every text that a task takes is shorter."""


class NotApplied(CommandError):
    """What was asked for changed nothing, or not all: ``said`` is what JSON says of it."""

    def __init__(self, said: dict[str, Any]) -> None:
        reason = redact(said["reason"])
        self.said = {**said, "reason": reason}
        super().__init__(printable(reason), returncode=1)

    @classmethod
    def of(cls, outcome: Outcome) -> NotApplied:
        """An action that did not apply."""
        return cls(outcome.as_dict())


class AgentCommand(OperatorCommand):
    """A command that agents call: with ``--json`` whatever comes of it is one JSON document on stdout.

    Exit status: 0 done, 1 it did not apply, or something is not there, 2 a wrong call. A call that cannot be read at all prints
    its usage to stderr only.
    """

    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return self._execute(*args, **options)
        except CommandError as error:
            if not options.get("json"):
                raise
            said = error.said if isinstance(error, NotApplied) else _said(error)
            print_json(self.stdout, said)
            sys.exit(error.returncode)

    def _execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except InvalidTask as error:
            raise CommandError(_line(error), returncode=2) from error
        except (TasksError, WorkspacesError, SocketError) as error:
            raise CommandError(_line(error)) from error


def _line(error: Exception) -> str:
    """What it says, as it can be shown: it may quote what others have written."""
    return printable(redact(str(error)))


def _said(error: CommandError) -> dict[str, Any]:
    return {"ok": False, "reason": str(error)}


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="as JSON, for scripts")


def add_as(parser: argparse.ArgumentParser) -> None:
    """Add ``--as``."""
    parser.add_argument(
        "--as",
        dest="agent",
        metavar="AGENT",
        help="who does it: a user's name, or service:NAME (default: what ACW_AGENT says)",
    )


def add_operator(parser: argparse.ArgumentParser) -> None:
    """Add ``--operator``."""
    parser.add_argument(
        "--operator",
        action="store_true",
        help=f"in its publisher's place; the user needs the permission {OPERATE}",
    )


def acting_agent(options: dict[str, Any]) -> Agent:
    """The agent that ``--as`` or ``ACW_AGENT`` names; raises UnknownAgent, and CommandError where neither does."""
    name: str = options["agent"] or settings.ACW_AGENT
    if not name:
        raise CommandError(
            "who does this? Say it with --as AGENT, or set ACW_AGENT: a user's name, or service:NAME",
            returncode=2,
        )
    return agents.find(name)


def actor(options: dict[str, Any]) -> Actor:
    """Who acts: the agent, or, with ``--operator``, its user in the publisher's place."""
    agent = acting_agent(options)
    if not options.get("operator"):
        return acting(agent)
    if agent.user is None or not agent.user.has_perm(OPERATE):
        raise CommandError(
            f"--operator: {agent} does not have the permission {OPERATE}"
        )
    return operating(agent.user)


def duration(text: str) -> dt.timedelta:
    """An argument such as ``1h30m``."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r}: {error}; accepted: {ACCEPTED}"
        ) from None


def number(text: str) -> int:
    """An argument that is a whole number from 0 on."""
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 0 on, got {text!r}"
        )
    return int(text)


def numbers(text: str) -> list[int]:
    """An argument such as ``1,3``; the empty one is none."""
    return [number(item.strip()) for item in text.split(",") if item.strip()]


def given(text: str | None) -> str:
    """The text of an argument; ``-`` is what comes from standard input. Raises CommandError where that is no text."""
    if text != STDIN:
        return text or ""
    try:
        return sys.stdin.read(LONGEST_INPUT)
    except UnicodeDecodeError as error:
        raise CommandError(
            f"standard input is no text in UTF-8: {error.reason}", returncode=2
        ) from None
