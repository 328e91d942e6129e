"""Values that others handed over, as they stand in error messages: short, and named without running code of theirs."""

from __future__ import annotations

from typing import Any

LONGEST = 60
"""Characters shown of a text."""

_SHOWN_IN_FULL = (int, float, bool, type(None))
_LONGEST_INTEGER = 64


def shown(value: Any) -> str:
    """The value as Python writes it, where that is short and safe; otherwise what it is."""
    kind = type(value)
    if issubclass(kind, str):
        text = str.__getitem__(value, slice(LONGEST))
        return repr(str.__str__(text)) + ("…" if str.__len__(value) > LONGEST else "")
    if kind is int and value.bit_length() > _LONGEST_INTEGER:
        # Python refuses to print one of thousands of digits.
        return f"an integer of {value.bit_length():,} bits"
    return repr(value) if kind in _SHOWN_IN_FULL else f"an object of type {named(kind)}"


def named(kind: type) -> str:
    """The name of a class."""
    name = type.__dict__["__name__"].__get__(kind)
    return str(name)[:LONGEST]
