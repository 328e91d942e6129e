from __future__ import annotations

import getpass
import os
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError

from jobs.command_line import OperatorCommand, actor


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
