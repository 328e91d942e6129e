"""Wakes the pool when a notification says that there is new work.

A notification is only a hint: without the listener the pool finds the work one poll interval later.
"""

from __future__ import annotations

import logging
import time
import uuid

from jobs.connection import UNAVAILABLE, Outage, QueueConnection
from jobs.events import LogEvent
from jobs.part import Part
from jobs.pool import Pool
from jobs.wakeup import CHANNEL

log = logging.getLogger(__name__)

PROBE_EVERY = 30.0
"""Seconds between two round trips by which the listener proves that it hears."""

PROBE_ANSWER_WITHIN = 10.0

_PROBE = "probe:"
_WAIT = 0.5
"""Seconds after which it looks whether it is to stop."""


class Listener(Part):
    """LISTENs on a connection of its own; reconnects when that is lost or deaf."""

    def __init__(self, pool: Pool) -> None:
        super().__init__("acw-listener")
        self._pool = pool
        self._outage = Outage(self.name)
        self._connection = QueueConnection()

    def work(self) -> None:
        with self._connection:
            while not self.stopping.is_set():
                try:
                    self._listen()
                except UNAVAILABLE as error:
                    self._connection.close()
                    self.stopping.wait(self._outage.failed(error))
                except DeafError as error:
                    self._connection.close()
                    log.warning(LogEvent.LISTENER_LOST, extra={"error": str(error)})

    def _listen(self) -> None:
        connection = self._connection.raw()
        self._connection.execute(f"LISTEN {CHANNEL}", [])
        self._outage.passed()
        log.info(LogEvent.LISTENER_CONNECTED, extra={"channel": CHANNEL})
        # What was notified while nobody listened is found by looking.
        self._pool.wake()
        probe = _Probe(self._connection)
        while not self.stopping.is_set():
            for notification in connection.notifies(timeout=_WAIT, stop_after=1):
                if not probe.heard(notification.payload):
                    self._hear(notification.payload)
            probe.check()

    def _hear(self, message: str) -> None:
        if message.startswith(_PROBE):
            return  # another process proving that it hears
        if not message or self._pool.queues.discover(message.split(",")):
            self._pool.wake()


class DeafError(Exception):
    """The connection is open, and what is sent to it does not arrive."""


class _Probe:
    """Sends a message to itself now and then; raises :class:`DeafError` where it does not come back."""

    def __init__(self, connection: QueueConnection) -> None:
        self._connection = connection
        self._token = ""
        self._sent_at = time.monotonic()

    def heard(self, message: str) -> bool:
        """Whether this was the probe."""
        if self._token and message == self._token:
            self._token = ""
            return True
        return False

    def check(self) -> None:
        """Send a probe where one is due; complain where one is lost."""
        age = time.monotonic() - self._sent_at
        if self._token and age > PROBE_ANSWER_WITHIN:
            raise DeafError(f"no answer to a probe within {PROBE_ANSWER_WITHIN:.0f} s")
        if not self._token and age > PROBE_EVERY:
            self._token = _PROBE + uuid.uuid4().hex
            self._sent_at = time.monotonic()
            self._connection.execute("SELECT pg_notify(%s, %s)", [CHANNEL, self._token])
