"""Keeps the leases of what this process holds, and tells the others that it is alive."""

from __future__ import annotations

import datetime as dt
import json
import os
import time

from django.conf import settings

from jobs import claims, leases, registry
from jobs.connection import UNAVAILABLE, Outage, QueueConnection
from jobs.part import Part
from jobs.pool import Pool

BEATS_PER_LEASE = 5
"""So many chances to extend a lease before it runs out."""

LONGEST_BEAT = dt.timedelta(seconds=20)

_ALIVE = """
INSERT INTO job_workers (id, name, host, pid, threads, queues, types, stopping)
VALUES (gen_random_uuid(), %(name)s, %(host)s, %(pid)s, %(threads)s, %(queues)s, %(types)s, %(stopping)s)
ON CONFLICT (name) DO UPDATE
SET beat_at = statement_timestamp(), queues = excluded.queues, types = excluded.types, stopping = excluded.stopping
"""


def beat_interval(lease: dt.timedelta) -> dt.timedelta:
    """The time between two heartbeats for leases of this length."""
    return min(lease / BEATS_PER_LEASE, LONGEST_BEAT)


def alive_within() -> dt.timedelta:
    """A worker whose last heartbeat is older than this is taken for dead."""
    lease: dt.timedelta = settings.JOBS_JOB_REAPER_LEASE_TIMEOUT
    return 3 * beat_interval(lease)


class Heartbeat(Part):
    """One statement a beat extends everything that the pool holds."""

    def __init__(self, pool: Pool) -> None:
        super().__init__("acw-heartbeat")
        self._pool = pool
        self._outage = Outage(self.name)
        self._connection = QueueConnection()
        self._interval = beat_interval(pool.lease).total_seconds()

    def work(self) -> None:
        with self._connection:
            while not self.stopping.is_set():
                try:
                    self.beat()
                except UNAVAILABLE as error:
                    self.stopping.wait(min(self._outage.failed(error), self._interval))
                else:
                    self._outage.passed()
                    self.stopping.wait(self._interval)

    def beat(self) -> None:
        """Extend the leases, learn which have passed on, and which queues have work."""
        trusted_until = time.monotonic() + self._pool.lease.total_seconds()
        held = self._pool.held()
        lost = (
            leases.extend(self._connection, held, self._pool.lease) if held else set()
        )
        self._pool.extended(trusted_until, lost)
        self._pool.queues.discover(claims.pending_queues(self._connection))
        self.announce()

    def announce(self) -> None:
        """Write this process's row, also where somebody removed it."""
        self._connection.execute(
            _ALIVE,
            {
                "name": self._pool.worker,
                "host": settings.ACW_HOST,
                "pid": os.getpid(),
                "threads": len(self._pool.threads),
                "queues": json.dumps(self._pool.queues.names()),
                "types": json.dumps(sorted(registry.job_types())),
                "stopping": self._pool.stopping.is_set(),
            },
        )
