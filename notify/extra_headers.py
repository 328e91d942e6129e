"""The headers of an endpoint's own: which there may be, and how people write them. Pure.

Their values may be credentials, so no message quotes one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from notify.exceptions import InvalidHeader

MOST = 20
MOST_BYTES = 8_192

_NAME = re.compile(r"[A-Za-z0-9-]+")
_VALUE = re.compile(r"[ -~]*")

# What frames the request, or says who sends it and what: set by ACW, or by nobody.
_RESERVED = frozenset(
    {
        "accept-encoding",
        "connection",
        "cookie",
        "cookie2",
        "date",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
    }
)
_RESERVED_PREFIXES = ("content-", "proxy-", "svix-", "webhook-", "x-acw-")


def parse(text: str) -> dict[str, str]:
    """The headers in ``text``, one ``Name: value`` a line; empty lines count for nothing.

    Raises :class:`~notify.exceptions.InvalidHeader`, which names the line or the header.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        name = name.strip()
        if not colon or not name:
            raise InvalidHeader(f'line {number} is not of the form "Name: value"')
        if name.lower() in map(str.lower, found):
            raise InvalidHeader(f"the header {name!r} is given twice")
        found[name] = value.strip()
    return found


def checked(headers: Mapping[str, str]) -> dict[str, str]:
    """``headers``, without the spaces around their values.

    Raises :class:`~notify.exceptions.InvalidHeader` for a name that is reserved or comes twice, for what is not
    printable ASCII, and where there are too many.
    """
    kept = {name: value.strip() for name, value in headers.items()}
    for name, value in kept.items():
        check_characters(name, value)
        if not value:
            raise InvalidHeader(f"the header {name!r} has no value")
        if is_reserved(name):
            raise InvalidHeader(
                f"the header {name!r} is reserved: ACW sets it, or nobody does"
            )
    if len({name.lower() for name in kept}) < len(kept):
        raise InvalidHeader(
            "a header is given twice: upper and lower case are the same"
        )
    if len(kept) > MOST:
        raise InvalidHeader(f"there are {len(kept)} headers, and at most {MOST} may be")
    size = sum(len(f"{name}: {value}\r\n") for name, value in kept.items())
    if size > MOST_BYTES:
        raise InvalidHeader(
            f"the headers have {size:,} bytes, and at most {MOST_BYTES:,} may be"
        )
    return kept


def check_characters(name: str, value: str) -> None:
    """Raises :class:`~notify.exceptions.InvalidHeader` for what cannot stand in a header."""
    if not _NAME.fullmatch(name):
        raise InvalidHeader(
            f"the header {name!r}: a name is letters, digits and hyphens"
        )
    if not _VALUE.fullmatch(value):
        raise InvalidHeader(f"the header {name!r}: its value is not printable ASCII")
    if value != value.strip(" "):
        raise InvalidHeader(f"the header {name!r}: its value has spaces around it")


def is_reserved(name: str) -> bool:
    """Whether an endpoint may not have a header of this name."""
    lower = name.lower()
    return lower in _RESERVED or lower.startswith(_RESERVED_PREFIXES)


def permitted(headers: Mapping[str, str]) -> dict[str, str]:
    """Those that are not reserved: what is stored may be older than the rules."""
    return {name: value for name, value in headers.items() if not is_reserved(name)}
