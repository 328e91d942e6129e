"""How a worker process comes to its end whatever hangs: what it still has to write has a limit, and so has all of it."""

from __future__ import annotations

import datetime as dt
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import connections

from jobs.connection import UNAVAILABLE, Outage
from jobs.events import LogEvent

log = logging.getLogger(__name__)

ANSWER_WITHIN = 2.0
"""Seconds past its deadline within which the database must have answered the last try."""

_SLACK = 14.0
"""Seconds, past the grace, for the last writes and for the parts to end: longer than all their limits together."""


def shutdown_limit() -> float:
    """Seconds after which a shutdown is over in any case."""
    grace: dt.timedelta = settings.JOBS_SHUTDOWN_GRACE
    return grace.total_seconds() + _SLACK


def exit_now(status: int) -> None:
    """End the process without waiting for any thread; what is open is closed by the system."""
    os._exit(status)


def persist(step: Callable[[], Any], outage: Outage, *, until: float) -> None:
    """Do what needs the database, again and again until ``until`` (monotonic).

    Without it, the leases run out and the reaper does the rest.
    """
    while True:
        try:
            step()
        except UNAVAILABLE as error:
            left = until - time.monotonic()
            pause = outage.failed(error)
            if left <= 0:
                return
            threading.Event().wait(min(pause, left))
        else:
            return


def persist_or_leave(step: Callable[[], Any], outage: Outage, *, until: float) -> bool:
    """As :func:`persist`, and leave it behind where the last try has no answer (a lock, a network that swallows everything).

    Returns whether it came to an end.
    """
    what = step.__name__.strip("_")

    def run() -> None:
        try:
            persist(step, outage, until=until)
        except Exception:
            log.exception(LogEvent.MODULE_LAST_WRITE_FAILED, extra={"what": what})
        finally:
            connections.close_all()

    thread = threading.Thread(target=run, name=f"acw-{what}", daemon=True)
    thread.start()
    thread.join(max(0.0, until - time.monotonic()) + ANSWER_WITHIN)
    if thread.is_alive():
        log.error(
            LogEvent.MODULE_LAST_WRITE_FAILED,
            extra={
                "what": what,
                "error": "the database does not answer: what was not written is left to the leases",
            },
        )
        return False
    return True


class Guard(threading.Thread):
    """Ends the process ``seconds`` from now with ``status``, unless it is called off. Runs once it is made."""

    def __init__(self, seconds: float, *, status: int) -> None:
        super().__init__(name="acw-guard", daemon=True)
        self._seconds = seconds
        self._status = status
        self._off = threading.Event()
        self.start()

    def off(self) -> None:
        """The process has come to its end by itself."""
        self._off.set()

    def run(self) -> None:
        if not self._off.wait(self._seconds):
            exit_now(self._status)
