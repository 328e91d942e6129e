"""What ``manage.py task`` and ``manage.py agent`` have in common: who acts, arguments, and errors as text or JSON."""

from __future__ import annotations

import argparse
import contextlib
import sys
from typing import Any, TextIO

from django.conf import settings
from django.core.management.base import CommandError

from jobs.command_line import OperatorCommand
from jobs.redaction import redact
from jobs.tables import print_json, printable
from workspaces.exceptions import InvalidName, WorkspacesError
from workspaces.tasks import agents, streams
from workspaces.tasks.actors import Actor, acting, operating
from workspaces.tasks.exceptions import InvalidTask, TasksError
from workspaces.tasks.models import Agent
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.sockets import SocketError
from workspaces.tasks.streams import Unwritten

OPERATE = "tasks.operate_task"
STDIN = object()
"""In the place of a text that is to be read from standard input."""
LONGEST_INPUT = 1_000_000
"""Characters that are read of the standard input; every text that a task takes is shorter."""

UNWRITTEN = 3
"""The exit status of a call that did what was asked for and could not say so."""
INTERRUPTED = 130
"""The exit status of a call that was interrupted, as shells have it."""


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

    Exit status: 0 done, 1 it did not apply, or something is not there, 2 a wrong call, ``UNWRITTEN`` done, but the answer could
    not be written. A call that cannot be read at all prints its usage to stderr only.
    """

    def __init__(self, stdout: TextIO | None = None, **others: Any) -> None:
        others["stderr"] = streams.words(others.get("stderr") or sys.stderr)
        super().__init__(streams.answer(stdout or sys.stdout), **others)

    def execute(self, *args: Any, **options: Any) -> str | None:
        if options.get("stdout"):
            options["stdout"] = streams.answer(options["stdout"])
        try:
            done = self._execute(*args, **options)
            self.stdout.flush()
        except Unwritten as error:
            raise CommandError(
                f"the answer could not be written ({error}); what was asked for is done",
                returncode=UNWRITTEN,
            ) from error
        except CommandError as error:
            if options.get("json"):
                self._answer(error)
            if isinstance(error, NotApplied) and not options.get("traceback"):
                raise CommandError(str(error), returncode=error.returncode) from error
            raise
        return done

    def _answer(self, error: CommandError) -> None:
        """Exit with what the error says as JSON, or return where that cannot be written."""
        said = error.said if isinstance(error, NotApplied) else _said(error)
        with contextlib.suppress(Unwritten):
            print_json(self.stdout, said)
            self.stdout.flush()
            sys.exit(error.returncode)

    def _execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except (InvalidTask, InvalidName) as error:
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
    name: str | None = options["agent"]
    if name == "":
        raise CommandError("--as: it names nobody", returncode=2)
    name = name or settings.ACW_AGENT
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


def text(argument: str) -> object:
    """An argument that is a text; ``-`` is what comes from standard input, once :func:`with_texts` reads it."""
    return STDIN if argument == "-" else argument


def with_texts(options: dict[str, Any]) -> dict[str, Any]:
    """The options, with the text that is to come from standard input. Raises CommandError where none can be had."""
    return {
        name: _read() if value is STDIN else value for name, value in options.items()
    }


def _read() -> str:
    if sys.stdin is None:
        raise CommandError("standard input is closed", returncode=2)
    try:
        return sys.stdin.read(LONGEST_INPUT)
    except UnicodeDecodeError as error:
        raise CommandError(
            f"standard input is no text in UTF-8: {error.reason}", returncode=2
        ) from None
    except (OSError, ValueError) as error:
        raise CommandError(
            f"standard input cannot be read: {error}", returncode=2
        ) from None
    except KeyboardInterrupt:
        raise CommandError(
            "interrupted while standard input was read; nothing was changed",
            returncode=INTERRUPTED,
        ) from None
