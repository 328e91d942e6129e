"""Calling ``manage.py task`` and ``agent`` as their users do, in this process."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command


def run(command: str, *arguments: object) -> str:
    """What the call prints; it raises CommandError where it does not succeed."""
    out = io.StringIO()
    call_command(command, *map(str, arguments), stdout=out)
    return out.getvalue()


def answer(command: str, *arguments: object) -> Any:
    """The JSON of a call that succeeds."""
    return json.loads(run(command, *arguments, "--json"))


def refused(command: str, *arguments: object, status: int = 1) -> str:
    """The one line of a call that fails, with this exit status; the same with ``--json`` is the reason there."""
    with pytest.raises(CommandError) as error:
        run(command, *arguments)
    said = str(error.value)
    assert error.value.returncode == status
    assert said.isprintable()
    return said


def refusal(command: str, *arguments: object, status: int = 1) -> dict[str, Any]:
    """The JSON of a call that fails, with this exit status."""
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(command, *map(str, arguments), "--json", stdout=out)
    assert ended.value.code == status
    said: dict[str, Any] = json.loads(out.getvalue())
    assert said["ok"] is False
    return said
