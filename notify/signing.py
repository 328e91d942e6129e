"""Signing a webhook: the headers of one attempt, and the rules for the secret. Pure.

Two schemes sign the same bytes with the same key, the secret's own bytes, in which nothing is decoded: the contract's
(``X-ACW-Signature``), which has room for one signature, and that of Standard Webhooks (``webhook-signature``), which
has room for several. Both are HMAC-SHA256 (RFC 2104).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets as random_secrets
import uuid
from collections.abc import Sequence

from notify.exceptions import InvalidSecret

SECRET_MIN_BYTES = 24
SECRET_MAX_BYTES = 64


def headers(
    secrets: Sequence[str],
    *,
    event_id: uuid.UUID,
    timestamp: int,
    topic: str,
    body: bytes,
) -> dict[str, str]:
    """The headers of one attempt, made afresh for each: ``timestamp`` is Unix seconds now.

    The first of ``secrets`` makes ``X-ACW-Signature``, and all of them ``webhook-signature``; the second, which there
    is while a secret is being changed, ``X-ACW-Signature-Other`` too. ``event_id`` stays the same over all attempts, for
    the receiver's deduplication.
    """
    acw = [signature(secret, timestamp=timestamp, body=body) for secret in secrets]
    made = {
        "Content-Type": "application/json",
        "X-ACW-Topic": topic,
        "X-ACW-Event-Id": str(event_id),
        "X-ACW-Timestamp": str(timestamp),
        "X-ACW-Signature": acw[0],
        "webhook-id": str(event_id),
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            standard_signature(
                secret, event_id=event_id, timestamp=timestamp, body=body
            )
            for secret in secrets
        ),
    }
    if len(acw) > 1:
        made["X-ACW-Signature-Other"] = acw[1]
    return made


def signature(secret: str, *, timestamp: int, body: bytes) -> str:
    """``sha256=`` and the hexadecimal HMAC-SHA256 with ``secret`` over ``<timestamp>.<body>``."""
    return "sha256=" + _digest(secret, b"%d.%b" % (timestamp, body)).hex()


def standard_signature(
    secret: str, *, event_id: uuid.UUID, timestamp: int, body: bytes
) -> str:
    """``v1,`` and the base64 HMAC-SHA256 with ``secret`` over ``<event_id>.<timestamp>.<body>``."""
    signed = b"%b.%d.%b" % (str(event_id).encode(), timestamp, body)
    return "v1," + base64.b64encode(_digest(secret, signed)).decode("ascii")


def standard_form(secret: str) -> str:
    """The secret as the libraries of Standard Webhooks take it: the same key, written in base64."""
    return "whsec_" + base64.b64encode(secret.encode()).decode("ascii")


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
    return random_secrets.token_urlsafe(32)


def _digest(secret: str, signed: bytes) -> bytes:
    return hmac.new(secret.encode(), signed, hashlib.sha256).digest()
