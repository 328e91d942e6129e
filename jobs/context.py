"""What a handler is given beside its payload."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from dataclasses import dataclass, field

from jobs.exceptions import LeaseLost

_making_events = threading.Lock()


@dataclass(kw_only=True, slots=True, eq=False)
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
    _stopping: bool = field(default=False, init=False)
    _lease_lost: bool = field(default=False, init=False)
    # Made when a handler first waits: most never do, and an event costs more than the rest of the context.
    _stop: threading.Event | None = field(default=None, init=False)

    @property
    def should_stop(self) -> bool:
        """True once the worker is shutting down or the lease has passed to another worker."""
        return self._stopping

    @property
    def lease_lost(self) -> bool:
        """True once another worker holds this job: whatever is done from now on is done twice."""
        return self._lease_lost

    @property
    def remaining(self) -> dt.timedelta | None:
        """Time left of the type's ``timeout``, not below zero; None where it has none."""
        if self.timeout is None:
            return None
        left = self.timeout - dt.timedelta(seconds=time.monotonic() - self.started)
        return max(left, dt.timedelta(0))

    def check_lease(self) -> None:
        """Raise :class:`LeaseLost` where the lease is known to have passed on."""
        if self._lease_lost:
            raise LeaseLost(f"job {self.job_id}: lease {self.lease_seq} has passed on")

    def wait(self, delay: dt.timedelta) -> bool:
        """Wait for ``delay`` or until the worker wants to stop; return ``should_stop``."""
        if self._stop is None:
            with _making_events:  # threads of the handler's own may wait on one context
                if self._stop is None:
                    self._stop = threading.Event()
        # Only now: who sets the flag looks for the event afterwards, so one of the two sees the other.
        if not self._stopping:
            self._stop.wait(delay.total_seconds())
        return self._stopping

    def notify_stop(self) -> None:
        """Called by the worker: the handler is asked to come to an end."""
        self._stopping = True
        if self._stop is not None:
            self._stop.set()

    def notify_lease_lost(self) -> None:
        """Called by the heartbeat: the lease has passed on. Also wakes a handler that waits."""
        self._lease_lost = True
        self.notify_stop()
