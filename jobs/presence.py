"""This process's row in ``job_workers``: that it is alive, what it serves, and what in it has stalled."""

from __future__ import annotations

import json
import os

from django.conf import settings

from jobs import registry
from jobs.connection import Executes
from jobs.pool import Pool

_ALIVE = """
INSERT INTO job_workers (id, name, host, pid, threads, queues, types, stopping, stalled)
VALUES (
    gen_random_uuid(), %(name)s, %(host)s, %(pid)s, %(threads)s, %(queues)s, %(types)s, %(stopping)s, %(stalled)s
)
ON CONFLICT (name) DO UPDATE
SET beat_at = statement_timestamp(), queues = excluded.queues, types = excluded.types,
    stopping = excluded.stopping, stalled = excluded.stalled
"""

_GONE = "DELETE FROM job_workers WHERE name = %(name)s"


class Presence:
    """``stalled`` names the parts that make no progress; the watchdog keeps it, and any thread may write it."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._signed_off = False
        self.stalled: tuple[str, ...] = ()

    def announce(self, connection: Executes) -> None:
        """Write the row, also where somebody removed it; nothing once the process has signed off."""
        if self._signed_off:
            return
        connection.execute(
            _ALIVE,
            {
                "name": self._pool.worker,
                "host": settings.ACW_HOST,
                "pid": os.getpid(),
                "threads": len(self._pool.threads),
                "queues": json.dumps(self._pool.queues.names()),
                "types": json.dumps(sorted(registry.job_types())),
                "stopping": self._pool.stopping.is_set(),
                "stalled": json.dumps(self.stalled),
            },
        )

    def sign_off(self, connection: Executes) -> None:
        """Remove the row."""
        self._signed_off = True
        connection.execute(_GONE, {"name": self._pool.worker})
