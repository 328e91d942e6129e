"""How jobs are shown to people, as plain text: for the admin, the commands and the doctor.

What is shown was written by others (payloads, errors): it is capped and
redacted here, and escaped where it is put into a page or on a terminal.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Mapping
from typing import Any

from jobs.outcomes import storable
from jobs.redaction import redact

ASKED_TO_STOP = "asked to stop"
"""What is said beside the status of a running job that an operator wants cancelled."""

LINE_LIMIT = 120
PAYLOAD_LIMIT = 20_000
"""Characters shown of a line and of a payload."""

_SECRET_KEY = re.compile(
    r"secret|passw|token|api.?key|private.?key|authori[sz]ation|credential|cookie",
    re.IGNORECASE,
)
_MASK = "***"
# Controls, and the marks that turn the direction of what stands beside them.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def first_line(text: str, limit: int = LINE_LIMIT) -> str:
    """The first line that is not empty, cut to ``limit`` characters."""
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def seen(text: str) -> str:
    """The text with its lines, each character that cannot be seen replaced by one that can."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def payload(stored: str) -> Any:
    """A payload from its JSON text, with secrets masked and URLs redacted.

    JSONB that Python cannot read (numbers of thousands of digits, nesting of thousands of
    levels) stays text.
    """
    try:
        return _redacted(json.loads(stored))
    except (ValueError, RecursionError):
        return redact(stored)


def payload_text(stored: str) -> str:
    """A payload as :func:`payload` gives it, as indented JSON of what can be seen; long ones capped."""
    value = payload(stored)
    if not isinstance(value, str):
        value = json.dumps(value, indent=2, ensure_ascii=False)
    return seen(storable(value, PAYLOAD_LIMIT))


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _MASK
            if _SECRET_KEY.search(key) and isinstance(item, str | int | float)
            else _redacted(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    return redact(value) if isinstance(value, str) else value


def state(status: str, cancel_requested_at: dt.datetime | None) -> str:
    """The status, and whether a running job was asked to stop: ``running, asked to stop``."""
    if status == "running" and cancel_requested_at is not None:
        return f"{status}, {ASKED_TO_STOP}"
    return status


def duration(value: dt.timedelta | None) -> str:
    """In its two largest units: ``2d 3h``, ``45s``; under a second ``0s``; None is ``-``."""
    if value is None:
        return "-"
    seconds = int(abs(value).total_seconds())
    parts: list[str] = []
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
        if len(parts) == 2 or (parts and not count):
            break
    sign = "-" if parts and value < dt.timedelta(0) else ""
    return sign + (" ".join(parts) or "0s")


def summary(counts: Mapping[str, Any]) -> str:
    """What a runner's tick did: ``3 returned, 0 dead``."""
    return ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in counts.items()
    )
