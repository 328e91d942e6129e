"""What is said on the workers' channel: JSON, so that no name of a queue can be taken for something else.

An array names queues that have new work. An object says something else, by its key; keys that a worker does not know
are left alone, so that a newer version may say more. What is no JSON, the empty message too, is from somebody who wants
all to look.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from jobs.leases import LeaseKey

ANY = ""
"""Has all workers look for work."""

_LIMIT = 7_900
"""PostgreSQL takes fewer than 8,000 bytes."""

_LEASES_AT_ONCE = 100

_PROBE, _CANCEL = "probe", "cancel"


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """What a message says. ``queues`` None is any queue, and an empty tuple none."""

    queues: tuple[str, ...] | None = ()
    cancelled: frozenset[LeaseKey] = frozenset()
    probe: str | None = None


def of_queues(queues: Iterable[str]) -> str:
    """There is new work in these; :data:`ANY` where they are too many to be named."""
    message = json.dumps(sorted(queues), separators=(",", ":"))
    return message if len(message) <= _LIMIT else ANY


def of_cancelled(leases: Collection[LeaseKey]) -> Iterator[str]:
    """Whoever runs a job under one of these leases is to come to an end: as many messages as that takes."""
    left = iter(leases)
    while some := list(islice(left, _LEASES_AT_ONCE)):
        pairs = [(job_id.hex, lease_seq) for job_id, lease_seq in some]
        yield json.dumps({_CANCEL: pairs}, separators=(",", ":"))


def of_probe(token: str) -> str:
    """The sender alone knows the token, and hears it where it hears anything."""
    return json.dumps({_PROBE: token})


def read(text: str) -> Message:
    """What the message says; never raises."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return Message(queues=None)
    if isinstance(said, list):
        return Message(queues=tuple(name for name in said if _is_name(name)))
    if not isinstance(said, dict):
        return Message(queues=None)
    probe = said.get(_PROBE)
    return Message(
        cancelled=_leases(said.get(_CANCEL)),
        probe=probe if isinstance(probe, str) else None,
    )


def _leases(pairs: object) -> frozenset[LeaseKey]:
    try:
        return frozenset((uuid.UUID(hex=job_id), int(seq)) for job_id, seq in pairs)  # type: ignore[attr-defined] # else it is none
    except (TypeError, ValueError, AttributeError, OverflowError):
        return frozenset()


def _is_name(name: object) -> bool:
    """Whether a queue can be called so: no text with a NUL or half a character can be stored."""
    try:
        return isinstance(name, str) and b"\0" not in name.encode()
    except UnicodeEncodeError:
        return False
