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
class Phases:
    """Milliseconds of each step. None where it was not come to, or not needed; the one that failed has its time too.

    ``answer_ms`` is sending, and waiting for the answer's head.
    """

    dns_ms: float | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None
    answer_ms: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """One POST: a ``status``, or else a ``failure`` with its ``cause`` in words that can be shown.

    ``duration`` ends with the answer's head, and ``phases`` are its parts. ``retry_after`` and ``date`` are those
    headers as they came. ``redirect`` is the origin that a redirect names. ``certificate_until`` is when the
    receiver's certificate expires. ``excerpt`` is the beginning of the answer's body, undecoded.
    """

    duration: dt.timedelta
    phases: Phases = Phases()
    status: int | None = None
    failure: Failure | None = None
    cause: str = ""
    peer: str | None = None
    retry_after: str | None = None
    date: str | None = None
    certificate_until: dt.datetime | None = None
    redirect: str | None = None
    excerpt: bytes = b""
