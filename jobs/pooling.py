"""Whether notifications arrive through what stands between this process and the server.

A pooler in transaction mode gives the session that listens to somebody else with the next transaction: LISTEN is accepted there, and
nothing is ever heard.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from jobs.connection import QueueConnection

ANSWER_WITHIN = 3.0
"""Seconds in which a notification must have come back."""

_WAIT = 0.25


def notifications_arrive(
    connection: QueueConnection, *, given_up: Callable[[], bool]
) -> bool:
    """Whether ``connection`` hears what another connection sends; also false once ``given_up`` says so.

    Not sent on the connection itself, which hears its own through any pooler; and on a channel of this probe alone, so that no
    session of the pool is left listening to what others send.
    """
    channel = f"acw_probe_{uuid.uuid4().hex}"
    connection.execute(f"LISTEN {channel}", [])
    with QueueConnection() as other:
        other.execute("SELECT pg_notify(%s, '')", [channel])
    until = time.monotonic() + ANSWER_WITHIN
    heard = False
    while not heard and not given_up() and time.monotonic() < until:
        heard = any(
            notification.channel == channel
            for notification in connection.raw().notifies(timeout=_WAIT, stop_after=1)
        )
    connection.execute(f"UNLISTEN {channel}", [])
    return heard
