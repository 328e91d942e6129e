"""Signing a webhook: the headers of one attempt, and the rules for the secret. Pure.

The scheme is the contract's: HMAC-SHA256 (RFC 2104) over the timestamp's digits, a dot and the
body's bytes as sent. The key is the secret's own bytes; nothing in it is decoded.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid

from notify.exceptions import InvalidSecret

SECRET_MIN_BYTES = 24
SECRET_MAX_BYTES = 64


def headers(
    *, secret: str, event_id: uuid.UUID, timestamp: int, topic: str, body: bytes
) -> dict[str, str]:
    """The headers of one attempt, made afresh for each: ``timestamp`` is Unix seconds now.

    ``event_id`` stays the same over all attempts, for the receiver's deduplication.
    """
    return {
        "Content-Type": "application/json",
        "X-ACW-Topic": topic,
        "X-ACW-Event-Id": str(event_id),
        "X-ACW-Timestamp": str(timestamp),
        "X-ACW-Signature": signature(secret, timestamp=timestamp, body=body),
    }


def signature(secret: str, *, timestamp: int, body: bytes) -> str:
    """``sha256=`` and the hexadecimal HMAC-SHA256 with ``secret`` over ``<timestamp>.<body>``."""
    signed = str(timestamp).encode("ascii") + b"." + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def checked_secret(text: str) -> str:
    """``text`` without the spaces and line ends around it, which files and copying add.

    Raises :class:`~notify.exceptions.InvalidSecret`, which names the rule and never quotes the secret.
    """
    secret = text.strip()
    if not all("!" <= character <= "~" for character in secret):
        raise InvalidSecret("the secret must be printable ASCII without spaces")
    if not SECRET_MIN_BYTES <= len(secret) <= SECRET_MAX_BYTES:
        raise InvalidSecret(
            f"the secret must be {SECRET_MIN_BYTES} to {SECRET_MAX_BYTES} characters long, got {len(secret)}"
        )
    return secret


def new_secret() -> str:
    """A secret of 256 random bits."""
    return secrets.token_urlsafe(32)
