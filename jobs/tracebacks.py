"""Tracebacks as Python prints them, whatever was raised: in bounded time and memory, and without failing.

Python's own formatting prints all of it: each frame of a recursion, each member of a group, a message of any length, and it stumbles
over exceptions that were made by hand. Here each has its share, head and tail.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from itertools import islice
from types import TracebackType

from jobs.redaction import storable, words
from jobs.wording import named

FIRST_FRAMES = 40
LAST_FRAMES = 60
"""Frames shown of one error, from where it was caught to where it was raised."""

LONGEST_CHAIN = 20
"""Errors shown of those that led to each other, the last ones."""

MEMBERS = 50
"""Errors shown of groups, all in all."""

NOTES = 20
ERROR_SHARE = 32_000
"""Characters of one error with its frames."""

_CAUSED = "\nThe above exception was the direct cause of the following exception:\n\n"
_DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
_BUILT_IN = ("builtins", "__main__")


def formatted(error: BaseException) -> str:
    """The error with its frames and those that led to it. Never raises."""
    try:
        return "".join(_chain(error, [MEMBERS]))
    # What has a class of its own may be anything, and what became of a job must not be lost for it.
    except BaseException as broken:
        return f"(the traceback could not be made: {named(type(broken))})\n"


def _chain(error: BaseException, members: list[int]) -> Iterator[str]:
    links, complete = _links(error)
    if not complete:
        yield f"… more than {LONGEST_CHAIN} errors led to each other, earlier ones left out …\n\n"
    for link, then in reversed(links):
        yield storable("".join(_one(link, members)), ERROR_SHARE)
        yield then


def _links(error: BaseException) -> tuple[list[tuple[BaseException, str]], bool]:
    """The error and what led to it, each with what stands behind it; and whether that is all."""
    links = [(error, "")]
    seen = {id(error)}
    while len(links) < LONGEST_CHAIN:
        cause, during = _before(links[-1][0])
        if cause is None or id(cause) in seen:
            return links, True
        seen.add(id(cause))
        links.append((cause, _DURING if during else _CAUSED))
    return links, False


def _before(error: BaseException) -> tuple[BaseException | None, bool]:
    """What the error was raised from, or else while what was handled; and whether it is the latter."""
    # A class may have overridden the attributes; these are the ones that `raise` sets.
    cause = BaseException.__cause__.__get__(error)  # type: ignore[union-attr]
    if cause is not None or BaseException.__suppress_context__.__get__(error):  # type: ignore[attr-defined]
        return cause, False
    return BaseException.__context__.__get__(error), True  # type: ignore[union-attr]


def _one(error: BaseException, members: list[int]) -> Iterator[str]:
    trace = BaseException.__traceback__.__get__(error)  # type: ignore[union-attr]
    if trace is not None:
        yield "Traceback (most recent call last):\n"
        yield from _frames(trace)
    yield _headline(error)
    yield from _notes(error)
    if issubclass(type(error), BaseExceptionGroup):
        yield from _members(error, members)  # type: ignore[arg-type]


def _frames(trace: TracebackType) -> Iterator[str]:
    count = sum(1 for _ in traceback.walk_tb(trace))
    try:
        if count <= FIRST_FRAMES + LAST_FRAMES:
            yield from traceback.extract_tb(trace).format()
            return
        yield from traceback.extract_tb(trace, limit=FIRST_FRAMES).format()
        yield f"  … {count - FIRST_FRAMES - LAST_FRAMES:,} frames left out …\n"
        yield from traceback.extract_tb(trace, limit=-LAST_FRAMES).format()
    except BaseException as broken:  # the source's file may be anything by now
        yield f"  (the frames could not be shown: {named(type(broken))})\n"


def _headline(error: BaseException) -> str:
    kind = type(error)
    module = kind.__dict__.get("__module__")
    where = f"{module}." if type(module) is str and module not in _BUILT_IN else ""
    message = words(error)
    return f"{where[:200]}{named(kind)}{f': {message}' if message else ''}\n"


def _notes(error: BaseException) -> Iterator[str]:
    notes = object.__getattribute__(error, "__dict__").get("__notes__")
    if not isinstance(notes, list | tuple):
        return
    for note in islice(notes, NOTES):
        yield f"{words(note)}\n"
    if len(notes) > NOTES:
        yield f"… {len(notes) - NOTES:,} notes left out …\n"


def _members(
    group: BaseExceptionGroup[BaseException], left: list[int]
) -> Iterator[str]:
    members = BaseExceptionGroup.exceptions.__get__(group)
    for number, member in enumerate(members, 1):
        if left[0] <= 0:
            yield f"  … {len(members) - number + 1:,} members left out …\n"
            return
        left[0] -= 1
        yield f"  +---------------- {number} of {len(members):,} ----------------\n"
        text = "".join(_chain(member, left))
        yield from (f"  | {line}\n" for line in text.splitlines())
