"""Taking credentials out of text before it is logged, stored or shown.

URLs may carry them: as user and password, or in the query.
"""

from __future__ import annotations

import re

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
