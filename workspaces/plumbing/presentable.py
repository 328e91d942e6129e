"""What git and a remote wrote, and what a repository's files say, before it is logged, stored or shown.

Without secrets, control characters and marks that turn the direction of writing round. Each step costs no more than
the text is long, whatever is in it.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Collection
from urllib.parse import quote, unquote, urlsplit

from jobs.redaction import redact

HIDDEN = "***"

_CONTROL = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
# Headers that log in, and tokens of forges, which a remote may tell back.
_HEADER = re.compile(
    r"(?P<what>\b(?:authorization|private-token|cookie)[:=][ ]?(?:basic |bearer |token )?)[^\s'\"]{1,4096}",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"\b(?:gh[oprsu]_[A-Za-z0-9]{16,255}|github_pat_[A-Za-z0-9_]{16,255}"
    r"|glpat-[A-Za-z0-9_-]{16,255}|xox[abprs]-[A-Za-z0-9-]{10,255})"
)
# Shorter ones are in every other word.
_SHORTEST_SECRET = 4


def stderr(written: bytes, *, secrets: Collection[str] = ()) -> str:
    """What a command wrote for people, as text of several lines; ``secrets`` are known ones, left out literally."""
    text = written.decode(errors="replace").replace("\r", "\n")
    text = _CONTROL.sub(" ", text)
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return _TOKEN.sub(HIDDEN, _HEADER.sub(rf"\g<what>{HIDDEN}", redact(text)))


def value(text: str, *, longest: int = 200) -> str:
    """A value that an agent wrote, as one line of at most ``longest`` characters."""
    # More than is shown is looked at, so that no cut parts a credential from what it is known by.
    shown = stderr(text[: longest + 4096].encode(errors="surrogateescape"))
    shown = " ".join(shown.split("\n"))
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def disk_error(error: OSError) -> str:
    """What the disk would not do, and where; the name may be an agent's."""
    said = error.strerror or type(error).__name__
    if not isinstance(error.filename, str | bytes):  # none, or an open one's number
        return said
    return f"{said}: {value(os.fsdecode(error.filename), longest=500)}"


def secrets_of_url(url: str) -> frozenset[str]:
    """The password of a URL, or the token in its place: as written, decoded, encoded, and as a header has it."""
    if "@" not in url:
        return frozenset()
    try:
        login = urlsplit(url if "://" in url else f"//{url}").netloc.rpartition("@")[0]
    except ValueError:
        login = ""
    if not login:
        return frozenset()
    user, _, password = login.partition(":")
    spellings = set()
    for secret in {password or user, unquote(password or user)}:
        spellings |= {secret, quote(secret, safe="")}
    for pair in {login, unquote(login), f"{unquote(user)}:{unquote(password)}"}:
        spellings.add(b64encode(pair.encode()).decode())
    return frozenset(
        spelling for spelling in spellings if len(spelling) >= _SHORTEST_SECRET
    )
