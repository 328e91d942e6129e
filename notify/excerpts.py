"""The beginning of a receiver's answer, made fit to store and show. Pure.

Many receivers repeat what they were asked for: the address, which may be the credential, the headers, and some even the
secret that they would have had it signed with.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote_to_bytes, urlsplit

from jobs.display import seen
from jobs.redaction import redact
from notify import signing

HIDDEN = b"***"

_TOO_SHORT_TO_HIDE = 3
"""Bytes of a path or a query: what is as short as "/" would be hidden in every answer and hides nothing."""
_SHORTEST_PART = 6
"""Bytes of a part of one, or of a header."""
_WORD = re.compile(r"[a-z_-]{1,15}")


def without_credentials(
    excerpt: bytes, *, url: str, headers: Mapping[str, str], secrets: Sequence[str]
) -> bytes:
    """``excerpt`` with stars in the place of what is in the URL, the endpoint's own headers, and the secrets.

    Also of their parts, as far as these could be credentials, and where the excerpt ends within one.
    """
    if not excerpt:
        return excerpt
    found = {*_of_url(url), *_of_headers(headers.values()), *secrets}
    found |= {signing.standard_form(secret) for secret in secrets}
    hidden = sorted({form for text in found for form in _forms(text)}, key=len)
    for credential in reversed(hidden):
        excerpt = excerpt.replace(credential, HIDDEN)
    for credential in reversed(hidden):
        end = excerpt[-len(credential) :]
        begun = end[end.rfind(credential[:_SHORTEST_PART]) :]
        if len(begun) >= _SHORTEST_PART and credential.startswith(begun):
            return excerpt.removesuffix(begun) + HIDDEN
    return excerpt


def readable(excerpt: bytes) -> str:
    """As text: nothing that moves a cursor or turns the direction of writing, no credentials in URLs."""
    return redact(seen(excerpt.decode(errors="replace")))


def _of_url(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    for text in (url, f"{parts.path}?{parts.query}", parts.path, parts.query):
        if len(text) > _TOO_SHORT_TO_HIDE:
            yield text
    for part in re.split("[/;,]", parts.path):
        # A plain word is no credential, and often part of what the receiver has to say.
        if len(part) >= _SHORTEST_PART and not _WORD.fullmatch(part):
            yield part
    for part in re.split("[&=]", parts.query):
        if len(part) >= _SHORTEST_PART:
            yield part


def _of_headers(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        for part in (value, *re.split('[ ,;="]', value)):
            if len(part) >= _SHORTEST_PART:
                yield part


def _forms(text: str) -> Iterator[bytes]:
    """As it is written in a URL, in HTML, and in JSON."""
    for plain in (text.encode(), unquote_to_bytes(text)):
        if len(plain) <= _TOO_SHORT_TO_HIDE:
            continue
        yield plain
        yield html.escape(plain.decode("latin-1")).encode("latin-1")
        yield plain.replace(b"\\", rb"\\").replace(b'"', rb"\"")
        yield plain.replace(b"/", rb"\/")
