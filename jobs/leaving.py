"""The end of the interpreter beside handlers that hang: in order where it can be, and in time in any case."""

from __future__ import annotations

import atexit
import sys
import threading
from typing import NoReturn

from jobs.ending import exit_now

THREADS_END_WITHIN = 5.0
"""Seconds that the interpreter may wait for threads which a handler has started and which are no daemons."""

CALLBACKS_END_WITHIN = 70.0
"""Seconds for what is registered with ``atexit``: to stop an embedded PostgreSQL may take a minute."""


def leave(status: int) -> NoReturn:
    """End the process with this exit status, by ``sys.exit`` where that comes to an end.

    So what is registered with ``atexit`` is done. The worker's own threads are daemons and hold up nothing.
    """
    threads_ended = threading.Event()
    # The last one registered is called first: once the interpreter waits for no thread any more.
    atexit.register(threads_ended.set)
    threading.Thread(
        target=_see_to_it, args=[status, threads_ended], name="acw-leaving", daemon=True
    ).start()
    sys.exit(status)


def _see_to_it(status: int, threads_ended: threading.Event) -> None:
    if threads_ended.wait(THREADS_END_WITHIN):
        threading.Event().wait(CALLBACKS_END_WITHIN)
    exit_now(status)
