from __future__ import annotations

import argparse
import datetime as dt
import errno
import getpass
import os
import subprocess
import sys
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from jobs import command_line
from jobs.command_line import (
    OperatorCommand,
    Verb,
    VerbsCommand,
    actor,
    add_subcommand,
    duration,
    positive,
    subcommands,
    up_to,
)


class Failing(OperatorCommand):
    """Raises what it is given."""

    error: Exception

    def handle(self, *args: Any, **options: Any) -> None:
        raise self.error


def test_the_actor_is_the_systems_user(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOGNAME", "carol")
    assert actor() == "command line (carol)"


def test_the_actor_is_a_number_where_the_user_has_no_name(
    monkeypatch: pytest.MonkeyPatch,
):
    def nameless() -> str:
        raise OSError("no name")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert actor() == f"command line (uid {os.getuid()})"


@pytest.mark.parametrize(
    "kind", [OperationalError, psycopg.OperationalError], ids=["django", "psycopg"]
)
def test_what_the_database_raises_is_one_line(kind: type[Exception]):
    command = Failing()
    command.error = kind("connection refused\nis it running?")
    with pytest.raises(CommandError) as raised:
        call_command(command)
    assert str(raised.value) == "the database refused: connection refused"
    assert raised.value.returncode == 1


def test_other_errors_keep_their_traceback():
    command = Failing()
    command.error = KeyError("x")
    with pytest.raises(KeyError):
        call_command(command)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EIO, "Input/output error"), "[Errno 5] Input/output error"),
        (TimeoutError(), "TimeoutError"),
    ],
    ids=["with words", "without"],
)
def test_what_the_system_raises_is_one_line(error: OSError, said: str):
    command = Failing()
    command.error = error
    with pytest.raises(CommandError) as raised:
        call_command(command)
    assert str(raised.value) == f"the system refused: {said}"
    assert raised.value.returncode == 1


@pytest.mark.django_db
def test_an_argument_that_is_no_text_is_a_wrong_call():
    with pytest.raises(CommandError, match=r"'x\\udcff' is no UTF-8") as raised:
        call_command("jobs", "list", "--type", "x\udcff")
    assert raised.value.returncode == 2


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "", "1_0", "٣", "9" * 5000])
def test_a_positive_number_is_of_digits_and_fits_a_column(text: str):
    with pytest.raises(argparse.ArgumentTypeError, match="whole number from 1 on"):
        positive(text)
    assert positive("9" * 18) == 10**18 - 1


def test_a_number_may_have_a_bound():
    assert up_to(1000)("1000") == 1000
    with pytest.raises(argparse.ArgumentTypeError, match="at most 1,000, got '1001'"):
        up_to(1000)("1001")


def greet(command: BaseCommand, options: dict[str, Any]) -> None:
    command.stdout.write(f"Hello {options['name']}")


def greeting() -> Verb:
    return Verb(
        name="greet",
        help="say hello",
        add_arguments=lambda parser: parser.set_defaults(name="Ada"),
        run=greet,
    )


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Verb:
    monkeypatch.setattr(command_line, "_subcommands", {})
    command = greeting()
    add_subcommand(command)
    return command


def test_what_is_added_is_a_verb_of_jobs(
    added: Verb, capsys: pytest.CaptureFixture[str]
):
    assert subcommands() == {"greet": added}
    call_command("jobs", "greet")
    assert capsys.readouterr().out == "Hello Ada\n"


class Greeting(VerbsCommand):
    requires_system_checks: list[str] = []
    verbs = (greeting(),)


def test_a_command_of_verbs_runs_the_one_that_is_named(
    capsys: pytest.CaptureFixture[str],
):
    call_command(Greeting(), "greet")
    assert capsys.readouterr().out == "Hello Ada\n"
    for wrong in ([], ["nonsense"]):
        with pytest.raises(CommandError):
            call_command(Greeting(), *wrong)


def test_another_under_the_same_name_is_refused(added: Verb):
    add_subcommand(added)
    with pytest.raises(ValueError, match="greet"):
        add_subcommand(greeting())


def test_a_duration_as_an_argument():
    assert duration("1h30m") == dt.timedelta(minutes=90)
    with pytest.raises(argparse.ArgumentTypeError) as error:
        duration("90")
    assert str(error.value).startswith("'90': it has no unit; accepted: a duration")


_CHATTY = """
import sys
import django
django.setup()
from django.core.management.base import CommandError
from jobs.command_line import OperatorCommand
class Chatty(OperatorCommand):
    requires_system_checks = []
    def handle(self, **options):
        wish = sys.stdin.readline().strip()
        self.stdout.write("said \\u2026 \\udcff")
        if wish == "exit":
            sys.exit(1)
        if wish:
            raise CommandError(wish)
Chatty().run_from_argv(["manage.py", "chatty"])
"""


@pytest.mark.parametrize(
    ("wish", "said"),
    [(b"", b""), (b"it failed", b"CommandError: it failed\n"), (b"exit", b"")],
)
def test_where_nobody_reads_what_it_prints_it_says_only_its_error(
    wish: bytes, said: bytes
):
    with subprocess.Popen(
        [sys.executable, "-c", _CHATTY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    ) as chatty:
        assert chatty.stdout is not None
        chatty.stdout.close()
        chatty.stdout = None
        _, complaint = chatty.communicate(wish + b"\n", timeout=60)

    assert (chatty.returncode, complaint) == (1, said)


@pytest.mark.parametrize("wish", [b"", b"it failed"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_where_the_disk_is_full_it_says_so_in_one_line(wish: bytes, unbuffered: str):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", _CHATTY],
            input=wish + b"\n",
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            timeout=60,
            check=False,
        )
    full_disk = b"the system refused: [Errno 28] No space left on device"
    said = wish if wish and not unbuffered else full_disk
    assert (done.returncode, done.stderr) == (1, b"CommandError: %s\n" % said)


@pytest.mark.parametrize(
    ("encoding", "printed"),
    [("ascii", rb"said \u2026 \udcff"), ("utf-8", "said … ".encode() + rb"\udcff")],
)
def test_what_the_terminal_has_not_is_printed_as_an_escape(
    encoding: str, printed: bytes
):
    done = subprocess.run(
        [sys.executable, "-c", _CHATTY],
        input=b"\n",
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, printed + b"\n", b"")


def test_with_its_output_closed_it_does_what_it_does():
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, _CHATTY],
        input=b"\n",
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
