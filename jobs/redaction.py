"""Text of others (errors, outputs, payloads) before it is logged, stored or shown: without credentials, capped, of valid characters.

URLs may carry credentials: as user and password, or in the query.
"""

from __future__ import annotations

import re

from jobs.wording import named

LONGEST_WORDS = 4_000
"""Characters kept of what an object says of itself."""

_MARGIN = 4_000
"""Characters beside a cut that are looked at for credentials which it would part."""

# Every repetition is bounded, so that hostile output (a git server's, a receiver's) costs no more than its
# length. A password may hold what a URL should escape: after "user:" everything up to the last @ goes.
_URL = re.compile(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.\-]{0,19}://)"
    r"(?:(?P<user>[^\s/?#:@\"'<>]{0,256})(?P<password>:[^\s\"'<>]{0,1024})?@)?"
    r"(?P<rest>[^\s?\"'<>]{0,4096})"
    r"(?P<query>\?[^\s\"'<>]{0,8192})?"
)
# With these the user is a login's name; elsewhere it may be an access token.
_NAMED_USER_SCHEMES = {
    "ssh://",
    "git+ssh://",
    "svn+ssh://",
    "postgresql://",
    "postgres://",
}
_STOCK_PASSWORDS = {":", ":x-oauth-basic"}


def redact(text: str) -> str:
    """``text`` with passwords (or the tokens in their place) and queries of URLs replaced by ``***``."""
    if "://" not in text:
        return text
    return _URL.sub(_redact_url, text)


def _redact_url(match: re.Match[str]) -> str:
    query = "" if match["query"] is None else "?***"
    return f"{match['scheme']}{_login(match)}{match['rest']}{query}"


def _login(match: re.Match[str]) -> str:
    user, password = match["user"], match["password"]
    if user is None:
        return ""
    if password is None:
        return f"{user}@" if match["scheme"].lower() in _NAMED_USER_SCHEMES else "***@"
    # A token as the user, with an empty or a stock password.
    return "***@" if password in _STOCK_PASSWORDS else f"{user}:***@"


def storable(text: str, limit: int) -> str:
    """``text`` as PostgreSQL can store it: redacted, at most about ``limit`` characters, head and tail kept."""
    if len(text) <= limit:
        text = redact(_clean(text))
        if len(text) <= limit:
            return text
    half = limit // 2
    left_out = len(text) - 2 * half
    head = redact(_clean(text[: half + _MARGIN]))[:half]
    tail = redact(_clean(text[-half - _MARGIN :]))[-half:]
    return f"{head}\n… {left_out:,} characters left out …\n{tail}"


def words(value: object) -> str:
    """What the value says of itself, an error's message, say: its ``str()`` as :func:`storable` makes it. Never raises."""
    try:
        said = str(value)
    # Whatever it is: an object that cannot speak must not lose what became of a job.
    except BaseException as broken:
        return f"(its message could not be made: {named(type(broken))})"
    # What __str__ returns may be of a class of its own.
    return storable(said if type(said) is str else str.__str__(said), LONGEST_WORDS)


def _clean(text: str) -> str:
    text = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return text.encode(errors="backslashreplace").decode()
