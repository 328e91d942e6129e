"""What ``enqueue`` is told of a job beside its payload: checked here, so that an error names the argument, and the database refuses nothing."""

from __future__ import annotations

import datetime as dt
from typing import Any, cast

from jobs.exceptions import InvalidJob
from jobs.models import Priority
from jobs.outcomes import describe
from jobs.wording import named, shown

MOST_ATTEMPTS = 1_000_000

EARLIEST = dt.datetime(2, 1, 2, tzinfo=dt.UTC)
LATEST = dt.datetime(9998, 12, 30, tzinfo=dt.UTC)
"""A time outside could be stored and not be read again: in another time zone it is in a year that Python does not have."""

_PRIORITIES = frozenset(Priority.values)


def text(name: str, value: str | None, longest: int) -> str | None:
    """The text, as it can be stored; refuses more than ``longest`` characters, NUL and lone surrogates."""
    if value is None:
        return None
    kind = type(value)
    if not issubclass(kind, str):
        raise InvalidJob(f"{name}: must be text, got {named(kind)}")
    # First, since the rest takes as long as the text is.
    if (length := str.__len__(value)) > longest:
        raise InvalidJob(
            f"{name}: {length:,} characters, at most {longest} are accepted"
        )
    if kind is not str:
        value = str.__str__(value)
    if "\x00" in value:
        raise InvalidJob(f"{name}: must not hold a NUL character")
    if not value.isascii() and any(
        "\ud800" <= character <= "\udfff" for character in value
    ):
        raise InvalidJob(f"{name}: must not hold a lone surrogate")
    return value


def required_text(name: str, value: str, longest: int) -> str:
    """As :func:`text`; refuses an empty one too."""
    checked = text(name, value, longest)
    if not checked:
        raise InvalidJob(f"{name}: must not be empty")
    return checked


def reference(ref_id: object, longest: int) -> str | None:
    """The text of ``ref_id``: of an integer or a UUID as well."""
    if ref_id is None or issubclass(type(ref_id), str):
        return text("ref_id", cast("str | None", ref_id), longest)
    try:
        made = str(ref_id)
    except Exception as error:
        raise InvalidJob(
            f"ref_id: no text can be made of it: {describe(error)}"
        ) from error
    return text("ref_id", made, longest)


def time(run_at: dt.datetime | None) -> dt.datetime | None:
    """The time, in UTC; refuses one without a time zone and one of years that cannot be read again."""
    if run_at is None or (
        type(run_at) is dt.datetime
        and run_at.tzinfo is dt.UTC
        and EARLIEST <= run_at <= LATEST
    ):
        return run_at
    if not issubclass(type(run_at), dt.datetime):
        raise InvalidJob(f"run_at: must be a datetime, got {shown(run_at)}")
    try:
        written = dt.datetime.isoformat(run_at)
        if run_at.utcoffset() is None:
            raise InvalidJob(f"run_at: must have a time zone, got {written}")
        if not EARLIEST <= run_at <= LATEST:
            raise InvalidJob(
                f"run_at: must be from the year {EARLIEST.year} to {LATEST.year}, got {written}"
            )
        there = dt.datetime.isoformat(dt.datetime.astimezone(run_at, dt.UTC))
        # Of no class of its own, which a driver may not know.
        return dt.datetime.fromisoformat(there)
    except InvalidJob:
        raise
    except Exception as error:
        raise InvalidJob(f"run_at: its time zone fails: {describe(error)}") from error


def priority(value: Priority) -> int:
    """The number of the level."""
    number = int.__int__(value) if issubclass(type(value), int) else None
    if number not in _PRIORITIES:
        raise InvalidJob(
            f"priority: must be one of {list(Priority)}, got {shown(value)}"
        )
    return number


def max_attempts(value: Any) -> int:
    """The number of executions."""
    if type(value) is not int or not 1 <= value <= MOST_ATTEMPTS:
        raise InvalidJob(
            f"max_attempts: must be from 1 to {MOST_ATTEMPTS:,}, got {shown(value)}"
        )
    return value
