"""Reads environment variables, and keeps the list of all that were read.

A bad value is refused with the variable's name, the value (never that of a secret) and
what is accepted. From `VARIABLES` the start-up check, the tests and the documentation
take their lists.
"""

from __future__ import annotations

import difflib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import environ
from django.core.exceptions import ImproperlyConfigured

from acw.kinds import TEXT, Kind

T = TypeVar("T")

PREFIXES = ("ACW_", "JOBS_", "NOTIFY_WEBHOOK_", "TASKS_")
# Read by the tests' own plugin, before there are settings.
_TESTS_PREFIX = "ACW_TEST_"

_ENV_FILE_LINE = re.compile(r"(?:export )?[A-Za-z_][A-Za-z_0-9]*=.*")


@dataclass(frozen=True, kw_only=True)
class Variable:
    """One environment variable: what it takes, and what it is when unset."""

    name: str
    kind: Kind[Any]
    default: str
    secret: bool


VARIABLES: dict[str, Variable] = {}


def read(
    name: str,
    kind: Kind[T],
    *,
    default: str = "",
    secret: bool = False,
    required: bool = False,
) -> T:
    """Return the variable's value, or its default's, as its kind makes it."""
    VARIABLES[name] = Variable(name=name, kind=kind, default=default, secret=secret)
    # Not through Env.str(): it takes a value that begins with "$" for the name of
    # another variable, and such a secret would silently become something else.
    value = environ.Env.ENVIRON.get(name, default).strip()
    if required and not value:
        raise ImproperlyConfigured(
            f"{name} is unset, and required where DATABASE_URL is set;"
            f" accepted: {kind.accepted}"
        )
    try:
        return kind.parse(value)
    except ValueError as error:
        shown = "the value set (a secret, not shown)" if secret else repr(value[:80])
        raise ImproperlyConfigured(
            f"{name} cannot be {shown}: {error}; accepted: {kind.accepted}"
        ) from None


def load_file(directory: Path) -> None:
    """Read the file of NAME=value lines; what the environment has already, stays."""
    name = read("ACW_ENV_FILE", TEXT, default=".env")
    path = directory / name
    if not name or (name == ".env" and not path.exists()):
        return
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{path} cannot be read: {error}") from None
    for number, line in enumerate(content.splitlines(), start=1):
        # django-environ would print the line it cannot read, with the secret in it.
        if line and not line.startswith("#") and not _ENV_FILE_LINE.fullmatch(line):
            raise ImproperlyConfigured(
                f"{path}, line {number}: neither NAME=value (no spaces around the =),"
                " nor a comment, nor empty"
            )
    environ.Env.read_env(io.StringIO(content))


def unknown_variables() -> dict[str, str | None]:
    """Return the set variables that look like ACW's and are none, each with the known
    name that comes closest."""
    found: dict[str, str | None] = {}
    for name in sorted(environ.Env.ENVIRON):
        if name in VARIABLES or name.startswith(_TESTS_PREFIX):
            continue
        if name.startswith(PREFIXES):
            closest = difflib.get_close_matches(name, VARIABLES, n=1)
            found[name] = closest[0] if closest else None
    return found
