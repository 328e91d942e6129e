"""Wakes the pool when a notification says that there is new work.

A notification is only a hint: without the listener the pool finds the work one poll interval later.
"""

from __future__ import annotations

import datetime as dt
import logging
import time
import uuid

from django.conf import settings

from jobs import messages
from jobs.bounded import lock_limit
from jobs.connection import UNAVAILABLE, Outage, QueueConnection, is_direct
from jobs.events import LogEvent
from jobs.messages import Message
from jobs.part import Part
from jobs.pool import Pool
from jobs.pooling import notifications_arrive
from jobs.wakeup import CHANNEL

log = logging.getLogger(__name__)

PROBE_EVERY = 30.0
"""Seconds between two round trips by which the listener proves that it hears."""

PROBE_ANSWER_WITHIN = 10.0

LOOK_AGAIN_EVERY = 600.0
"""Seconds after which a listener that hears nothing through a pooler tries again."""

_WAIT = 0.5
"""Seconds after which it looks whether it is to stop."""


class Listener(Part):
    """LISTENs on a connection of its own; reconnects when that is lost or deaf.

    Behind a pooler that lets no notification through it leaves finding the work to the poll.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__("acw-listener")
        self._pool = pool
        self._outage = Outage(self.name)
        self._connection = QueueConnection()
        self._polling = False

    def work(self) -> None:
        with self._connection:
            while not self.stopping.is_set():
                try:
                    self._listen()
                except UNAVAILABLE as error:
                    self._connection.close()
                    self.wait(self._outage.failed(error))
                except DeafError as error:
                    self._connection.close()
                    log.warning(LogEvent.LISTENER_LOST, extra={"error": str(error)})

    def _listen(self) -> None:
        connection = self._connection.raw()
        if not is_direct(connection) and not self._hears():
            self._leave_it_to_the_poll()
            return
        self._polling = False
        self._connection.execute(f"LISTEN {CHANNEL}", [])
        self._outage.passed()
        log.info(LogEvent.LISTENER_CONNECTED, extra={"channel": CHANNEL})
        # What was notified while nobody listened is found by looking.
        self._pool.wake()
        probe = _Probe(self._connection)
        while not self.stopping.is_set():
            self.progress.moved()
            for notification in connection.notifies(timeout=_WAIT, stop_after=1):
                message = messages.read(notification.payload)
                if not probe.heard(message):
                    self._hear(message)
            probe.check()
            self._connection.check_writable()

    def _hears(self) -> bool:
        return notifications_arrive(self._connection, given_up=self.stopping.is_set)

    def _leave_it_to_the_poll(self) -> None:
        """Tell so once, and come back rarely: the pooler's configuration may have changed."""
        self._outage.passed()
        self._connection.close()
        if self.stopping.is_set():
            return
        if not self._polling:
            self._polling = True
            poll: dt.timedelta = settings.JOBS_POLL_INTERVAL
            log.warning(
                LogEvent.LISTENER_POLLING,
                extra={
                    "every": poll.total_seconds(),
                    "advice": "notifications do not arrive through the pooler: have DATABASE_URL lead to PostgreSQL "
                    "itself, or to a pool in session mode, if work is to start at once",
                },
            )
        self.wait(LOOK_AGAIN_EVERY)

    def _hear(self, message: Message) -> None:
        self._pool.cancel(message.cancelled)
        if message.queues is None or self._pool.queues.discover(message.queues):
            self._pool.wake()


# The commit of a notification takes a lock, which one that waits for a standby holds for as long.
_PROBE = "SELECT set_config('lock_timeout', %s, true), pg_notify(%s, %s)"


class DeafError(Exception):
    """The connection is open, and what is sent to it does not arrive."""


class _Probe:
    """Sends a message to itself now and then; raises :class:`DeafError` where it does not come back."""

    def __init__(self, connection: QueueConnection) -> None:
        self._connection = connection
        self._token = ""
        self._sent_at = time.monotonic()

    def heard(self, message: Message) -> bool:
        """Whether this was the probe, and not that of another process."""
        if self._token and message.probe == self._token:
            self._token = ""
            return True
        return False

    def check(self) -> None:
        """Send a probe where one is due; complain where one is lost."""
        age = time.monotonic() - self._sent_at
        if self._token and age > PROBE_ANSWER_WITHIN:
            raise DeafError(f"no answer to a probe within {PROBE_ANSWER_WITHIN:.0f} s")
        if not self._token and age > PROBE_EVERY:
            self._token = uuid.uuid4().hex
            self._sent_at = time.monotonic()
            self._connection.execute(
                _PROBE,
                [
                    lock_limit(),
                    CHANNEL,
                    messages.of_probe(self._token),
                ],
            )
