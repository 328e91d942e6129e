"""Takes what is secret out of URLs in text that is about to be logged."""

from __future__ import annotations

import re

# Every repetition is bounded, so that a hostile text costs no more than its length.
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]{0,19})://"
    r"(?:(?P<userinfo>[^\s/?#\"'<>]{0,2048})@)?"
    r"(?P<rest>[^\s?\"'<>]{0,4096})"
    r"(?P<query>\?[^\s\"'<>]{0,8192})?"
)
# With these the user is a login's name; elsewhere it may be an access token.
_NAMED_USER_SCHEMES = {"ssh", "git+ssh", "svn+ssh"}


def redact(text: str) -> str:
    """Hide each URL's password (or the token in its place) and its query string."""
    if "://" not in text:
        return text
    return _URL.sub(_redact_url, text)


def _redact_url(match: re.Match[str]) -> str:
    scheme, userinfo = match["scheme"], match["userinfo"]
    login = "" if userinfo is None else _redact_userinfo(scheme, userinfo) + "@"
    query = "" if match["query"] is None else "?***"
    return f"{scheme}://{login}{match['rest']}{query}"


def _redact_userinfo(scheme: str, userinfo: str) -> str:
    user, colon, password = userinfo.partition(":")
    if colon and password not in ("", "x-oauth-basic"):
        return f"{user}:***"
    if not colon and scheme.lower() in _NAMED_USER_SCHEMES:
        return user
    # A token alone, or as the user with an empty or a stock password.
    return "***"
