"""What people and agents write, checked at the edge: whatever could not be stored or shown is refused by its field."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

from jobs.durations import written
from workspaces.tasks.exceptions import InvalidTask

TEXT_LIMIT = 64_000
REASON_LIMIT = 4_000
CHECKLIST_LIMIT = 100
ITEM_LIMIT = 500
LONGEST = dt.timedelta(days=3650)
COUNT_LIMIT = 10_000


def text(field: str, value: str, *, limit: int, required: bool = False) -> str:
    """``value`` without blanks around it. Raises InvalidTask where it is too long, missing or cannot be stored."""
    if not isinstance(value, str):
        raise InvalidTask(f"{field}: must be text, got {type(value).__name__}")
    value = value.strip()
    if required and not value:
        raise InvalidTask(f"{field}: must not be empty")
    if len(value) > limit:
        raise InvalidTask(
            f"{field}: {len(value):,} characters, at most {limit:,} are accepted"
        )
    if "\x00" in value:
        raise InvalidTask(f"{field}: contains a NUL character, which cannot be stored")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidTask(
            f"{field}: contains a lone surrogate, which is no character"
        ) from None
    return value


def line(field: str, value: str, *, limit: int, required: bool = False) -> str:
    """As :func:`text`, and printable on one line."""
    value = text(field, value, limit=limit, required=required)
    if not value.isprintable():
        raise InvalidTask(f"{field}: must be one line of printable characters")
    return value


def checklist(items: Iterable[str]) -> list[str]:
    """The items of a checklist, none of which is empty."""
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise InvalidTask(
            f"checklist: must be a list of texts, got {type(items).__name__}"
        )
    found = [
        line(f"checklist[{n}]", item, limit=ITEM_LIMIT, required=True)
        for n, item in enumerate(items)
    ]
    if len(found) > CHECKLIST_LIMIT:
        raise InvalidTask(
            f"checklist: {len(found)} items, at most {CHECKLIST_LIMIT} are accepted"
        )
    return found


def done(numbers: Iterable[int], checklist_: Sequence[str]) -> tuple[int, ...]:
    """The numbers of checklist items that are done, from 1, each once and in order."""
    if not isinstance(numbers, Iterable):
        raise InvalidTask(
            f"done: must be a list of numbers, got {type(numbers).__name__}"
        )
    found = list(numbers)
    for number in found:
        if type(number) is not int or not 1 <= number <= len(checklist_):
            raise InvalidTask(
                f"done: {number!r} is no item of the checklist, which has {len(checklist_)}"
            )
    return tuple(sorted(set(found)))


def duration(field: str, value: dt.timedelta, *, zero: bool = False) -> dt.timedelta:
    """A duration longer than 0 (or 0 where ``zero``), and no longer than ten years."""
    if not isinstance(value, dt.timedelta):
        raise InvalidTask(f"{field}: must be a timedelta, got {type(value).__name__}")
    shortest = dt.timedelta(0) if zero else dt.timedelta(milliseconds=1)
    if not shortest <= value <= LONGEST:
        raise InvalidTask(
            f"{field}: {value} is out of range, at most {written(LONGEST)} is accepted, and no less than {written(shortest)}"
        )
    return value


def count(field: str, value: int, *, least: int) -> int:
    """A whole number that a small column takes."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidTask(f"{field}: must be a whole number, got {value!r}")
    if not least <= value <= COUNT_LIMIT:
        raise InvalidTask(
            f"{field}: {value} is out of range, {least} to {COUNT_LIMIT:,}"
        )
    return value
