"""Keeps the leases of what this process holds, and tells the others that it is alive."""

from __future__ import annotations

import datetime as dt
import time

from django.conf import settings

from jobs import claims, leases
from jobs.bounded import BoundedConnection, NoAnswerError
from jobs.connection import UNAVAILABLE, Outage
from jobs.part import Part
from jobs.pool import Pool
from jobs.presence import Presence

BEATS_PER_LEASE = 5
"""So many chances to extend a lease before it runs out."""

LONGEST_BEAT = dt.timedelta(seconds=20)


def beat_interval(lease: dt.timedelta) -> dt.timedelta:
    """The time between two heartbeats where this is the length of the shortest leases."""
    return min(lease / BEATS_PER_LEASE, LONGEST_BEAT)


def alive_within() -> dt.timedelta:
    """A worker whose last heartbeat is older than this is taken for dead.

    By the default lease alone: a worker that has types of shorter leases beats more often, and is no sooner dead for that.
    """
    lease: dt.timedelta = settings.JOBS_JOB_REAPER_LEASE_TIMEOUT
    return 3 * beat_interval(lease)


class Heartbeat(Part):
    """One statement a beat extends everything that the pool holds."""

    def __init__(self, pool: Pool, presence: Presence | None = None) -> None:
        super().__init__("acw-heartbeat")
        self._pool = pool
        self._presence = presence or Presence(pool)
        self._outage = Outage(self.name)
        self._connection = BoundedConnection(self.progress)
        self._interval = beat_interval(pool.leases.shortest).total_seconds()

    def work(self) -> None:
        with self._connection:
            while not self.stopping.is_set():
                try:
                    self.beat()
                except UNAVAILABLE as error:
                    self.wait(min(self._outage.failed(error), self._interval))
                else:
                    self._outage.passed()
                    self.wait(self._interval)

    def beat(self) -> None:
        """Keep what this process holds, and tell that it is alive."""
        try:
            self._keep()
        except NoAnswerError:
            # As behind an operator's lock on the jobs: who waits for that is not lost.
            self._presence.announce(self._connection)
            raise
        self._presence.announce(self._connection)

    def _keep(self) -> None:
        """Extend the leases, learn which have passed on, and which queues have work."""
        began = time.monotonic()
        held = self._pool.held()
        news = (
            leases.extend(self._connection, held, self._pool.leases)
            if held
            else leases.News(set(), set())
        )
        self._pool.extended(began, news.lost)
        self._pool.cancel(news.cancelled)
        self._pool.queues.discover(claims.pending_queues(self._connection))
