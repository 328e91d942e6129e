"""What a handler is given beside its payload."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from dataclasses import dataclass, field

from jobs.exceptions import LeaseLost


@dataclass(frozen=True, kw_only=True, slots=True)
class JobContext:
    """One execution of one job.

    ``attempt`` counts executions from 1. ``enqueued_at`` is the database's time. A handler that
    may take long asks ``should_stop`` between its steps, or waits with ``wait``.
    """

    job_id: uuid.UUID
    type: str
    ref_id: str | None
    queue: str
    attempt: int
    max_attempts: int
    lease_seq: int
    enqueued_at: dt.datetime
    timeout: dt.timedelta | None = None
    started: float = field(default_factory=time.monotonic)
    _stop: threading.Event = field(default_factory=threading.Event)
    _lease_lost: threading.Event = field(default_factory=threading.Event)

    @property
    def should_stop(self) -> bool:
        """True once the worker is shutting down or the lease has passed to another worker."""
        return self._stop.is_set() or self._lease_lost.is_set()

    @property
    def lease_lost(self) -> bool:
        """True once another worker holds this job: whatever is done from now on is done twice."""
        return self._lease_lost.is_set()

    @property
    def remaining(self) -> dt.timedelta | None:
        """Time left of the type's ``timeout``, not below zero; None where it has none."""
        if self.timeout is None:
            return None
        left = self.timeout - dt.timedelta(seconds=time.monotonic() - self.started)
        return max(left, dt.timedelta(0))

    def check_lease(self) -> None:
        """Raise :class:`LeaseLost` where the lease is known to have passed on."""
        if self._lease_lost.is_set():
            raise LeaseLost(f"job {self.job_id}: lease {self.lease_seq} has passed on")

    def wait(self, delay: dt.timedelta) -> bool:
        """Wait for ``delay`` or until the worker wants to stop; return ``should_stop``."""
        self._stop.wait(delay.total_seconds())
        return self.should_stop

    def notify_stop(self) -> None:
        """Called by the worker: the handler is asked to come to an end."""
        self._stop.set()

    def notify_lease_lost(self) -> None:
        """Called by the heartbeat: the lease has passed on. Also wakes a handler that waits."""
        self._lease_lost.set()
        self._stop.set()
