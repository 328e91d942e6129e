"""UUIDs of version 7, whose order is that of their making, so that inserts stay local in the index.

The standard library has ``uuid.uuid7`` from Python 3.14 on, PostgreSQL ``uuidv7()`` from 18 on.
"""

from __future__ import annotations

import os
import random
import time
import uuid

_SUB_MILLISECOND_BITS = 12


_COUNTER_BITS = 22
_TAIL_BITS = 62 - _COUNTER_BITS

# Identifiers must differ, not be unguessable: a system call for each would take as long as the rest of enqueuing.
# Its own generator, since programs seed the shared one; os.urandom seeds it, again in each process that is forked.
_random = random.Random()  # noqa: S311
os.register_at_fork(after_in_child=_random.seed)


def uuid7() -> uuid.UUID:
    """A new UUID version 7; see :func:`uuid7s`."""
    return uuid7s(1)[0]


def uuid7s(count: int) -> list[uuid.UUID]:
    """New UUIDs version 7 (RFC 9562 §5.7) in their order, with a sub-millisecond clock (§6.2, method 3).

    Those of one call, which share a clock reading, have a counter behind it (method 1).
    """
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction = (rest << _SUB_MILLISECOND_BITS) // 1_000_000
    first = (
        (milliseconds & 0xFFFF_FFFF_FFFF) << 80
        | 0x7 << 76
        | fraction << 64
        | 0b10 << 62
    )
    if count == 1:
        return [uuid.UUID(int=first | _random.getrandbits(62))]
    most = 1 << _COUNTER_BITS
    if count > most:
        return uuid7s(most) + uuid7s(count - most)
    return [
        uuid.UUID(int=first | n << _TAIL_BITS | _random.getrandbits(_TAIL_BITS))
        for n in range(count)
    ]
