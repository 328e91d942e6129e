"""Taking credentials out of text before it is logged, stored or shown.

URLs may carry them: as user and password, or in the query. Patterns are bounded, so that hostile
output (a git server's, a receiver's) cannot burn the processor.
"""

from __future__ import annotations

import re

_SCHEME = r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]{0,15}://)"
# A password may hold what a URL should escape, so that after "user:" everything up to the last @ goes.
_USERINFO = re.compile(
    _SCHEME + r"(?:[^\s/:@?#]{0,200}:[^\s'\"<>]{0,500}|[^\s/@?#]{1,500})@"
)
_QUERY = re.compile(_SCHEME + r"(?P<rest>[^\s?#'\"<>]{1,2000})\?[^\s'\"<>)\]]{1,4000}")


def redact(text: str) -> str:
    """``text`` with ``user:password@`` in URLs replaced by ``***@``, and their queries by ``?***``."""
    if "://" not in text:
        return text
    return _QUERY.sub(r"\g<scheme>\g<rest>?***", _USERINFO.sub(r"\g<scheme>***@", text))
