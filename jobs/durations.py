"""Durations as Go writes them (`30s`, `1h30m`, `1.5h`), read into timedeltas and written again.

Pure: knows neither the environment nor Django.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

ACCEPTED = "a duration with its units, such as 100ms, 30s, 5m, 1h30m or 720h"

_MICROSECONDS = {
    "ns": Decimal("0.001"),
    "us": Decimal(1),
    "µs": Decimal(1),  # U+00B5, micro sign
    "μs": Decimal(1),
    "ms": Decimal(1000),
    "s": Decimal(1_000_000),
    "m": Decimal(60_000_000),
    "h": Decimal(3_600_000_000),
}
# [0-9] and not \d, which takes the digits of every script.
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_PART = re.compile(rf"({_NUMBER})([^0-9.+\-\s]+)")
_BARE_NUMBER = re.compile(_NUMBER)

# Go counts nanoseconds in 63 bits; a longer text or time is a slip, not a wish.
_LONGEST_TEXT = 64
_LONGEST = dt.timedelta(microseconds=(2**63 - 1) // 1000)


def parse_duration(text: str) -> dt.timedelta:
    """Return the duration that `text` writes; ValueError says what is wrong with it."""
    if text == "0":  # the one number that Go takes without a unit
        return dt.timedelta(0)
    if not text:
        raise ValueError("it is empty")
    if len(text) > _LONGEST_TEXT:
        raise ValueError("it is too long")
    if text.startswith("-"):
        raise ValueError("it is negative")
    if _BARE_NUMBER.fullmatch(text):
        raise ValueError("it has no unit")

    total = Decimal(0)
    position = 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise ValueError(f"{text[position:]!r} is no number with a unit")
        number, unit = part.groups()
        if unit not in _MICROSECONDS:
            raise ValueError(
                f"it has the unknown unit {unit!r}; units: ns, us, ms, s, m, h"
            )
        total += Decimal(number) * _MICROSECONDS[unit]
        position = part.end()

    microseconds = int(total)
    if total > 0 and microseconds == 0:
        raise ValueError("it is shorter than a microsecond, the least that is kept")
    if microseconds > _LONGEST // dt.timedelta(microseconds=1):
        raise ValueError("it is longer than 292 years, the most that Go can count")
    return dt.timedelta(microseconds=microseconds)


def written(duration: dt.timedelta) -> str:
    """`duration`, which is not negative, as `parse_duration` reads it: ``168h``, ``1h30m``, ``0s``."""
    minutes, seconds = divmod(duration, dt.timedelta(minutes=1))
    hours, minutes = divmod(minutes, 60)
    parts = [
        f"{count}{unit}" for count, unit in ((hours, "h"), (minutes, "m")) if count
    ]
    if seconds or not parts:
        whole, rest = divmod(seconds // dt.timedelta(microseconds=1), 1_000_000)
        parts.append(f"{whole}.{rest:06}".rstrip("0").rstrip(".") + "s")
    return "".join(parts)
