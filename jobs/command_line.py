"""What operators' commands have in common: who is acting, arguments, errors in one line, and what other apps add to ``manage.py jobs``."""

from __future__ import annotations

import argparse
import datetime as dt
import getpass
import io
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TextIO

import psycopg
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error

from jobs.display import first_line
from jobs.durations import ACCEPTED, parse_duration

_POSITIVE = re.compile("[0-9]{1,18}")


def actor() -> str:
    """Who the audit names for what a command does: ``command line (<the system's user>)``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as containers have
        user = f"uid {os.getuid()}"
    return f"command line ({user})"


def duration(text: str) -> dt.timedelta:
    """An argument such as ``1h30m``."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r}: {error}; accepted: {ACCEPTED}"
        ) from None


def positive(text: str) -> int:
    """An argument that is a whole number from 1 on, of as many digits as a column of the largest kind is sure to take."""
    if not _POSITIVE.fullmatch(text) or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 1 on, got {text[:80]!r}"
        )
    return int(text)


def up_to(most: int) -> Callable[[str], int]:
    """Arguments that are whole numbers from 1 to ``most``."""

    def parse(text: str) -> int:
        if (number := positive(text)) > most:
            raise argparse.ArgumentTypeError(f"must be at most {most:,}, got {text!r}")
        return number

    return parse


Options = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Verb:
    """A verb of a command; ``run`` is given the command, to write to, and its options, and raises CommandError."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[BaseCommand, Options], None]


_subcommands: dict[str, Verb] = {}


def add_subcommand(added: Verb) -> None:
    """Add a verb to ``manage.py jobs``, in a module ``subcommands``, which :class:`jobs.apps.JobsConfig` imports.

    Raises ValueError where another was added under that name.
    """
    if _subcommands.setdefault(added.name, added) is not added:
        raise ValueError(f"`jobs {added.name}` was added already")


def subcommands() -> Mapping[str, Verb]:
    """What was added, by name."""
    return _subcommands


class OperatorCommand(BaseCommand):
    """A command whose errors are one line on stderr and an exit status: 1, or 2 for a wrong call.

    What the database or the system raises becomes such a line too, and text that is no UTF-8; ``--traceback`` shows where it
    came from. Where nobody reads what it prints any more, as behind ``| head``, it ends without a word, but for its error.
    What the terminal's encoding has not is printed as an escape.
    """

    def __init__(self, stdout: TextIO | None = None, **others: Any) -> None:
        # None where it is closed, as by ``>&-``.
        super().__init__(stdout or sys.stdout or io.StringIO(), **others)

    def execute(self, *args: Any, **options: Any) -> str | None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            said = super().execute(*args, **options)
            self.stdout.flush()
        except (Error, psycopg.Error) as error:
            reason = first_line(str(error), 300) or type(error).__name__
            raise CommandError(f"the database refused: {reason}") from error
        except BrokenPipeError:
            _print_no_more()
            sys.exit(1)
        except OSError as error:
            self._flush()
            reason = first_line(str(error), 300) or type(error).__name__
            raise CommandError(f"the system refused: {reason}") from error
        # Of an argument: what does not decode is handed on as surrogates, which nothing stores.
        except UnicodeEncodeError as error:
            text = error.object[:80]
            raise CommandError(f"{text!r} is no UTF-8", returncode=2) from error
        except (CommandError, SystemExit):
            # What was printed before comes first.
            self._flush()
            raise
        return said

    def _flush(self) -> None:
        try:
            self.stdout.flush()
        except OSError:
            _print_no_more()


def _print_no_more() -> None:
    """Or Python would complain of a broken pipe, or a full disk, once more when it flushes the stream at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class VerbsCommand(OperatorCommand):
    """A command that consists of verbs."""

    verbs: ClassVar[tuple[Verb, ...]]

    def add_arguments(self, parser: CommandParser) -> None:
        names = "|".join(verb.name for verb in self.verbs)
        parsers = parser.add_subparsers(dest="verb", required=True, metavar=names)
        for verb in self.verbs:
            verb.add_arguments(parsers.add_parser(verb.name, help=verb.help))

    def handle(self, *args: Any, **options: Any) -> None:
        (verb,) = (verb for verb in self.verbs if verb.name == options["verb"])
        verb.run(self, options)
