"""UUIDs of version 7, whose order is that of their making, so that inserts stay local in the index.

The standard library has ``uuid.uuid7`` from Python 3.14 on, PostgreSQL ``uuidv7()`` from 18 on.
"""

from __future__ import annotations

import os
import time
import uuid

_SUB_MILLISECOND_BITS = 12


def uuid7() -> uuid.UUID:
    """A new UUID version 7 (RFC 9562 §5.7), with a sub-millisecond clock (§6.2, method 3)."""
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction = (rest << _SUB_MILLISECOND_BITS) // 1_000_000
    random = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF
    return uuid.UUID(
        int=(milliseconds & 0xFFFF_FFFF_FFFF) << 80
        | 0x7 << 76
        | fraction << 64
        | 0b10 << 62
        | random
    )
