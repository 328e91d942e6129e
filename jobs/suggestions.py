"""What a person may have meant who wrote a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str) -> str:
    """A question that offers the closest of the known names, or ``otherwise`` where none is close."""
    close = difflib.get_close_matches(name, list(known), n=3)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else otherwise
