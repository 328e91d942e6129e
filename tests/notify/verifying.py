"""Receivers that have one secret at a time, and refuse what it has not signed."""

from __future__ import annotations

import threading
from collections.abc import Callable

import standardwebhooks

from notify import signing
from tests.notify import sinks
from tests.notify.sinks import Connection, Received

Check = Callable[[Received, str], bool]


def by_the_contract(request: Received, secret: str) -> bool:
    """One signature, compared for equality."""
    timestamp = int(request.headers["X-ACW-Timestamp"])
    expected = signing.signature(secret, timestamp=timestamp, body=request.body)
    return request.headers["X-ACW-Signature"] == expected


def by_standard_webhooks(request: Received, secret: str) -> bool:
    """As the published library does it."""
    verifier = standardwebhooks.Webhook(signing.standard_form(secret))
    try:
        verifier.verify(request.body, request.headers)
    except standardwebhooks.webhooks.WebhookVerificationError:
        return False
    return True


class Receiver:
    """A sink's behaviour. ``changes_at`` is the request, counted from 0, from which on it has the other secret."""

    def __init__(
        self,
        check: Check,
        secret: str,
        *,
        to: str | None = None,
        changes_at: int | None = None,
        refusal: int = 401,
    ) -> None:
        self.secret = secret
        self.taken: list[str] = []
        self.answers: list[int] = []
        self._check = check
        self._to = to
        self.changes_at = changes_at
        self._refusal = refusal
        self._lock = threading.Lock()

    def __call__(self, connection: Connection, request: Received) -> None:
        with self._lock:
            if self._to is not None and len(self.answers) == self.changes_at:
                self.secret = self._to
            genuine = self._check(request, self.secret)
            if genuine:
                self.taken.append(request.headers["X-ACW-Event-Id"])
            answer = 204 if genuine else self._refusal
            self.answers.append(answer)
        sinks.answer(answer)(connection, request)
