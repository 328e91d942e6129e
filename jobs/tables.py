"""What commands print: aligned tables for people, JSON for scripts."""

from __future__ import annotations

import codecs
import datetime as dt
import json
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from django.core.serializers.json import DjangoJSONEncoder

_GAP = "  "
_NOTHING = "-"


class Writes(Protocol):
    """What is printed to: a command's ``self.stdout``, or any text stream."""

    def write(self, text: str, /) -> Any: ...


def print_table(
    stdout: Writes,
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str | None = None,
) -> None:
    """Print the rows below the headers, one line each; numbers stand to the right.

    None, "" and [] print as ``-``, lists with commas, times to the second. What could move the cursor of a
    terminal (a control character in an error that somebody else wrote) prints as its
    escape. ``empty`` is printed instead where there are no rows.
    """
    listed = [list(row) for row in rows]
    if not listed and empty is not None:
        stdout.write(f"{empty}\n")
        return
    lines = [list(headers), *([cell(value) for value in row] for row in listed)]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    numeric = [
        bool(listed) and all(type(row[column]) in (int, float) for row in listed)
        for column in range(len(headers))
    ]
    for line in lines:
        cells = [
            _padded(text, width, right=right)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ]
        stdout.write(_GAP.join(cells).rstrip() + "\n")


class _Encoder(DjangoJSONEncoder):
    def default(self, o: object) -> Any:
        return o.total_seconds() if isinstance(o, dt.timedelta) else super().default(o)


def print_json(stdout: Writes, value: object) -> None:
    """Print the value as JSON; times in ISO 8601, durations in seconds. In ASCII where ``stdout`` does not take all of Unicode."""
    encoding = getattr(stdout, "encoding", None) or "utf-8"
    ascii_only = codecs.lookup(encoding).name != "utf-8"
    text = json.dumps(value, cls=_Encoder, indent=2, ensure_ascii=ascii_only)
    stdout.write(text + "\n")


def cell(value: object) -> str:
    """The value as it stands in a table: one line, printable."""
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    if value is None or value == "":
        return _NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dt.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S %Z").rstrip()
    return printable(str(value))


def printable(text: str) -> str:
    """``text`` with its control characters, line ends too, written as escapes."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )


def _padded(text: str, width: int, *, right: bool) -> str:
    padding = " " * (width - _width(text))
    return padding + text if right else text + padding


def _width(text: str) -> int:
    """The columns that a terminal gives it: wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.combining(char)
        else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )
