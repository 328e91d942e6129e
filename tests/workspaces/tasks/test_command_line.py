from __future__ import annotations

import argparse
import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.core.management.base import CommandParser
from django.db import DatabaseError
from pytest_django import Settings

from tests.workspaces.tasks.market import agent
from workspaces.exceptions import InvalidName, WorktreeBusy
from workspaces.tasks import command_line
from workspaces.tasks.command_line import AgentCommand, NotApplied
from workspaces.tasks.exceptions import InvalidTask, UnknownAgent, UnknownTask
from workspaces.tasks.sockets import SocketError


class Failing(AgentCommand):
    """A command that ends with an error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def add_arguments(self, parser: CommandParser) -> None:
        command_line.add_json(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        raise self.error


OPTIONS = {"force_color": False, "no_color": False, "skip_checks": True}

ERRORS = [
    (UnknownTask("there is no task 7"), 1, "there is no task 7"),
    (InvalidTask("title: must not be empty"), 2, "title: must not be empty"),
    (WorktreeBusy("try again"), 1, "try again"),
    (InvalidName("branch name '-x'"), 2, "branch name '-x'"),
    (
        SocketError("TASKS_ARBITER=x: it is not there"),
        1,
        "TASKS_ARBITER=x: it is not there",
    ),
    (CommandError("a wrong call", returncode=2), 2, "a wrong call"),
    (DatabaseError("no\nmore"), 1, "the database refused: no"),
    (UnknownTask("a\x1b[31mb"), 1, "a\\x1b[31mb"),
    (NotApplied({"ok": False, "reason": "too late"}), 1, "too late"),
    (UnknownTask("no https://u:pw@host/x"), 1, "no https://u:***@host/x"),
    (
        NotApplied({"ok": False, "reason": "in use: https://u:pw@host/x"}),
        1,
        "in use: https://u:***@host/x",
    ),
]


@pytest.mark.parametrize(("error", "status", "reason"), ERRORS)
def test_an_error_is_one_line(error: Exception, status: int, reason: str):
    with pytest.raises(CommandError) as raised:
        Failing(error).execute(**OPTIONS, json=False)
    assert str(raised.value) == reason
    assert raised.value.returncode == status


@pytest.mark.parametrize(("error", "status", "reason"), ERRORS)
def test_an_error_is_one_json_document(error: Exception, status: int, reason: str):
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        Failing(error).execute(**OPTIONS, json=True, stdout=out)
    assert ended.value.code == status
    assert json.loads(out.getvalue()) == {"ok": False, "reason": reason}


def test_what_is_no_error_of_the_callers_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        Failing(ZeroDivisionError()).execute(**OPTIONS, json=True)


@pytest.mark.django_db
def test_who_acts(settings: Settings):
    agent("bob")
    settings.ACW_AGENT = "bob"
    assert str(command_line.acting_agent({"agent": None})) == "bob"
    agent("carol")
    assert str(command_line.acting_agent({"agent": "carol"})) == "carol"
    with pytest.raises(UnknownAgent):
        command_line.acting_agent({"agent": "ghost"})
    with pytest.raises(CommandError, match="--as: it names nobody") as error:
        command_line.acting_agent({"agent": ""})
    assert error.value.returncode == 2
    settings.ACW_AGENT = ""
    with pytest.raises(CommandError, match="--as AGENT, or set ACW_AGENT") as error:
        command_line.acting_agent({"agent": None})
    assert error.value.returncode == 2


@pytest.mark.django_db
def test_only_a_user_with_the_permission_is_an_operator():
    agent("service:bot")
    User.objects.create_superuser("root")
    User.objects.create_superuser("gone", is_active=False)
    by = command_line.actor({"agent": "root", "operator": True})
    assert (str(by), by.operator) == ("root (operator)", True)
    by = command_line.actor({"agent": "root", "operator": False})
    assert (str(by), by.operator) == ("root", False)
    for name in ("service:bot", "gone"):
        with pytest.raises(CommandError, match=f"--operator: {name} does not have"):
            command_line.actor({"agent": name, "operator": True})


def test_numbers_as_arguments():
    assert command_line.number("007") == 7
    assert command_line.numbers("3, 1,") == [3, 1]
    assert command_line.numbers("") == []


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (command_line.number, "-1", "must be a whole number from 0 on, got '-1'"),
        (command_line.number, "٣", "must be a whole number"),
        (command_line.number, "9" * 19, "must be a whole number"),
        (command_line.numbers, "1,x", "must be a whole number from 0 on, got 'x'"),
    ],
)
def test_an_argument_that_is_refused(parse: Any, text: str, said: str):
    with pytest.raises(argparse.ArgumentTypeError) as error:
        parse(text)
    assert said in str(error.value)


def from_stdin() -> Any:
    return command_line.with_texts({"note": command_line.text("-"), "id": 7})["note"]


def test_the_text_of_an_argument(monkeypatch: pytest.MonkeyPatch):
    assert command_line.text("done") == "done"
    monkeypatch.setattr("sys.stdin", io.StringIO("from there\n"))
    given = {"note": command_line.text("-"), "id": 7, "title": "-"}
    assert command_line.with_texts(given) == {
        "note": "from there\n",
        "id": 7,
        "title": "-",
    }


def test_no_more_is_read_of_standard_input_than_could_be_kept(
    monkeypatch: pytest.MonkeyPatch,
):
    endless = io.StringIO("x" * (command_line.LONGEST_INPUT + 5))
    monkeypatch.setattr("sys.stdin", endless)
    assert len(from_stdin()) == command_line.LONGEST_INPUT


class Broken(io.StringIO):
    """A standard input whose reading fails."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def read(self, size: int | None = -1, /) -> str:
        raise self.error


@pytest.mark.parametrize(
    ("stdin", "status", "said"),
    [
        (
            io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), encoding="utf-8"),
            2,
            "is no text in UTF-8",
        ),
        (None, 2, "is closed"),
        (Broken(OSError("no disk")), 2, "cannot be read: no disk"),
        (Broken(KeyboardInterrupt()), 130, "was read; nothing was changed"),
    ],
)
def test_standard_input_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, stdin: Any, status: int, said: str
):
    monkeypatch.setattr("sys.stdin", stdin)
    with pytest.raises(CommandError, match=said) as error:
        from_stdin()
    assert error.value.returncode == status


class Full(io.StringIO):
    """A device that takes nothing; ``late`` only says so when it is flushed."""

    def __init__(self, *, late: bool) -> None:
        super().__init__()
        self.late = late

    def write(self, text: str, /) -> int:
        if not self.late:
            raise OSError("no space left")
        return len(text)

    def flush(self) -> None:
        raise OSError("no space left")


class Saying(Failing):
    """A command that does something and says so."""

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write("done")


@pytest.mark.parametrize("late", [False, True])
def test_what_is_done_and_cannot_be_said_has_a_status_of_its_own(late: bool):
    with pytest.raises(CommandError) as raised:
        Saying(ValueError()).execute(**OPTIONS, json=False, stdout=Full(late=late))
    assert raised.value.returncode == command_line.UNWRITTEN == 3
    assert str(raised.value) == (
        "the answer could not be written (no space left); what was asked for is done"
    )


def test_what_is_not_done_has_its_status_where_it_cannot_be_said():
    with pytest.raises(CommandError) as raised:
        Failing(InvalidTask("title: no")).execute(
            **OPTIONS, json=True, stdout=Full(late=True)
        )
    assert (str(raised.value), raised.value.returncode) == ("title: no", 2)


def test_an_action_that_does_not_apply_is_said_as_other_commands_do():
    with pytest.raises(CommandError) as raised:
        Failing(NotApplied({"ok": False, "reason": "too late"})).execute(
            **OPTIONS, json=False
        )
    assert type(raised.value) is CommandError


def test_a_standard_output_that_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(CommandError, match=r"\(it is closed\)") as raised:
        Saying(ValueError()).execute(**OPTIONS, json=False)
    assert raised.value.returncode == command_line.UNWRITTEN


@pytest.mark.parametrize("stderr", [None, Full(late=False), Full(late=True)])
def test_a_standard_error_that_takes_nothing_stands_in_nobodys_way(
    monkeypatch: pytest.MonkeyPatch, stderr: Any
):
    monkeypatch.setattr("sys.stderr", stderr)
    command = Saying(ValueError())
    monkeypatch.setattr(command, "execute", Failing(UnknownTask("no")).execute)
    with pytest.raises(SystemExit) as ended:
        command.run_from_argv(["manage.py", "task", "--skip-checks"])
    assert ended.value.code == 1
