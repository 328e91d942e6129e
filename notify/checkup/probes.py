"""What a check-up sends: a genuine event, the same once more, and three that a receiver has to refuse. Pure.

Each of the three is wrong in one way only, in both signatures, and has an id of its own: a receiver
that knows an id already may answer 2xx without looking any further.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from notify import signing, topics

OLD_SECONDS = 400
"""Older than the five minutes that receivers are told to allow."""

_TRUE_NOTE = "An operator checks this receiver up: please take this event and do nothing about it."
_ALTERED_NOTE = "An operator checks this receiver up: please take this event and do something about it."


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """The headers and the body of one request."""

    headers: Mapping[str, str]
    body: bytes


class Probes:
    """Those for one endpoint, which sign with ``secrets``; ``timestamp`` is always Unix seconds now."""

    def __init__(self, name: str, secrets: Sequence[str]) -> None:
        self._name = name
        self._secrets = secrets

    def genuine(self, event_id: uuid.UUID, timestamp: int) -> Probe:
        """As every delivery is; a second one with the same id is what a try after a lost answer looks like."""
        return self._signed(event_id, timestamp)

    def forged(self, event_id: uuid.UUID, timestamp: int) -> Probe:
        """Well-formed, and signed with a secret that nobody has."""
        return self._signed(event_id, timestamp, secrets=[signing.new_secret()])

    def old(self, event_id: uuid.UUID, timestamp: int) -> Probe:
        """Signed correctly, :data:`OLD_SECONDS` ago: what somebody has recorded and sends again."""
        return self._signed(event_id, timestamp - OLD_SECONDS)

    def altered(self, event_id: uuid.UUID, timestamp: int) -> Probe:
        """Another body than the one that was signed."""
        signed = self._signed(event_id, timestamp)
        body = self._body(timestamp, note=_ALTERED_NOTE)
        return Probe(headers=signed.headers, body=body)

    def _signed(
        self,
        event_id: uuid.UUID,
        timestamp: int,
        *,
        secrets: Sequence[str] | None = None,
    ) -> Probe:
        body = self._body(timestamp, note=_TRUE_NOTE)
        headers = signing.headers(
            self._secrets if secrets is None else secrets,
            event_id=event_id,
            timestamp=timestamp,
            topic=topics.TEST.name,
            body=body,
        )
        return Probe(headers=headers, body=body)

    def _body(self, timestamp: int, *, note: str) -> bytes:
        event = {
            "topic": topics.TEST.name,
            "title": "Check-up",
            "body": note,
            "data": {"endpoint": self._name, "checkup": True},
            "created_at": dt.datetime.fromtimestamp(timestamp, dt.UTC).isoformat(),
        }
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
