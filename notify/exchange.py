"""What one POST came to, as plain values: what the sender finds out and ``delivery`` judges."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum


class Failure(StrEnum):
    """Why there is no status: where the exchange ended."""

    INVALID = "invalid"
    """The URL or a header may not be sent; nothing was."""

    BLOCKED = "blocked"
    """The host has an address that webhooks may not reach; nothing was sent."""

    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    NETWORK = "network"
    """The connection broke, or what came back is not HTTP."""

    DEADLINE = "deadline"
    UNEXPECTED = "unexpected"
    """What no one thought of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """One POST: a ``status``, or else a ``failure`` with its ``cause`` in words that can be shown.

    ``duration`` ends with the answer's head. ``retry_after`` is that header as it came. ``redirect`` is the
    origin that a redirect names. ``excerpt`` is the beginning of the answer's body, undecoded.
    """

    duration: dt.timedelta
    status: int | None = None
    failure: Failure | None = None
    cause: str = ""
    peer: str | None = None
    retry_after: str | None = None
    redirect: str | None = None
    excerpt: bytes = b""
