"""What a handler is given beside its payload."""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from dataclasses import dataclass, field

from jobs.exceptions import Cancelled, LeaseLost

_making_events = threading.Lock()


@dataclass(kw_only=True, slots=True, eq=False)
class JobContext:
    """One execution of one job.

    ``attempt`` counts executions from 1. ``enqueued_at`` is the database's time. A handler that
    may take long asks ``should_stop`` between its steps, or waits with ``wait``. ``timeout`` is its type's; nothing
    keeps watch for the handler: whether the time is over is seen when somebody asks.
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
    settling: bool = field(default=False, init=False)
    """Set while, and after, the job is completed in its handler's own transaction, which may yet fail."""
    _stopping: bool = field(default=False, init=False)
    _lease_lost: bool = field(default=False, init=False)
    _cancel_requested: bool = field(default=False, init=False)
    # Made when a handler first waits: most never do, and an event costs more than the rest of the context.
    _stop: threading.Event | None = field(default=None, init=False)

    @property
    def should_stop(self) -> bool:
        """True once the worker is shutting down, the time is over, the job is to be cancelled, or its lease has passed to another worker."""
        return self._stopping or self.timed_out

    @property
    def timed_out(self) -> bool:
        """True once the handler has run for its type's ``timeout``: it is to end, or a while later its job is failed without it."""
        return self.timeout is not None and self._time_left(self.timeout) <= 0

    @property
    def lease_lost(self) -> bool:
        """True once another worker holds this job: whatever is done from now on is done twice."""
        return self._lease_lost

    @property
    def remaining(self) -> dt.timedelta | None:
        """Time left of the type's ``timeout``, not below zero; None where it has none."""
        if self.timeout is None:
            return None
        return dt.timedelta(seconds=max(0.0, self._time_left(self.timeout)))

    def _time_left(self, timeout: dt.timedelta) -> float:
        return self.started + timeout.total_seconds() - time.monotonic()

    @property
    def cancel_requested(self) -> bool:
        """True once an operator has asked for this job to be cancelled: it will not be tried again."""
        return self._cancel_requested

    def check_cancelled(self) -> None:
        """Raise :class:`Cancelled` where an operator is known to have asked for that."""
        if self._cancel_requested:
            raise Cancelled(f"stopped in attempt {self.attempt}, as it was asked to")

    def check_lease(self) -> None:
        """Raise :class:`LeaseLost` where the lease is known to have passed on."""
        if self._lease_lost:
            raise LeaseLost(f"job {self.job_id}: lease {self.lease_seq} has passed on")

    def wait(self, delay: dt.timedelta) -> bool:
        """Wait for ``delay`` or until the handler should stop, as at its deadline; return ``should_stop``."""
        if self._stop is None:
            with _making_events:  # threads of the handler's own may wait on one context
                if self._stop is None:
                    self._stop = threading.Event()
        until = time.monotonic() + delay.total_seconds()
        if self.timeout is not None:
            until = min(until, self.started + self.timeout.total_seconds())
        # Only now: who sets the flag looks for the event afterwards, so one of the two sees the other.
        while not self._stopping and (left := until - time.monotonic()) > 0:
            self._stop.wait(min(left, threading.TIMEOUT_MAX))
        return self.should_stop

    def notify_stop(self) -> None:
        """Called by the worker: the handler is asked to come to an end."""
        self._stopping = True
        if self._stop is not None:
            self._stop.set()

    def notify_cancel(self) -> None:
        """Called by whoever heard of it: an operator wants the job cancelled. Also wakes a handler that waits."""
        self._cancel_requested = True
        self.notify_stop()

    def notify_lease_lost(self) -> None:
        """Called by the heartbeat: the lease has passed on. Also wakes a handler that waits."""
        self._lease_lost = True
        self.notify_stop()
