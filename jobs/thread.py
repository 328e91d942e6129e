"""One worker thread: its batch, the execution under way, and the outcomes that are not yet written."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Collection
from typing import TYPE_CHECKING

from django.db import connections

from jobs import registry
from jobs.claims import Claim
from jobs.connection import UNAVAILABLE, Outage, QueueConnection
from jobs.context import JobContext
from jobs.events import LogEvent
from jobs.executor import execute
from jobs.handler_connections import HandlerConnections
from jobs.leases import LeasedJob, LeaseKey
from jobs.outbox import Outbox
from jobs.outcomes import NOT_BEGUN, Outcome

if TYPE_CHECKING:
    from jobs.pool import Pool

log = logging.getLogger(__name__)

FLUSH_AFTER = 0.05
"""Seconds that an outcome may wait for others to be written with it."""

_SLOW = 0.02
"""Seconds from which on a job's outcome-in-waiting predecessors are written before it starts."""

_DRAIN_RECHECK = 0.05


class Execution:
    """One job being executed, with the context that its handler sees."""

    __slots__ = ("context", "job")

    def __init__(self, job: LeasedJob) -> None:
        job_type = registry.find_job_type(job.type)
        self.job = job
        self.context = JobContext(
            job_id=job.id,
            type=job.type,
            ref_id=job.ref_id,
            queue=job.queue,
            attempt=job.attempts,
            max_attempts=job.max_attempts,
            lease_seq=job.lease_seq,
            enqueued_at=job.created_at,
            timeout=job_type.timeout if job_type else None,
        )

    def run(self, connections: HandlerConnections) -> Outcome | None:
        """See :func:`jobs.executor.execute`."""
        return execute(self.job, self.context, connections)


class WorkerThread(threading.Thread):
    """Claims, runs and finishes batches until its pool stops or, draining, nothing is due.

    The thread itself takes jobs from the left of ``_waiting``; whoever helps takes from the right. Deques make
    both safe without a lock.
    """

    def __init__(self, pool: Pool, number: int) -> None:
        super().__init__(name=f"acw-worker-{number}", daemon=True)
        self.error: BaseException | None = None
        self.execution: Execution | None = None
        self._pool = pool
        self._connection = QueueConnection()
        self._waiting: deque[LeasedJob] = deque()
        self.trusted_until = 0.0
        self.done = Outbox(pool.worker)
        self._outage = Outage(self.name)

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error
        finally:
            self._connection.close()
            connections.close_all()

    def _work(self) -> None:
        while not self._pool.stopping.is_set():
            generation = self._pool.generation
            wanted = self._pool.claim_wanted()
            if not self._claim(wanted):
                continue
            if self._waiting or self._take_over():
                self._run_batch()
            elif wanted.floors:
                self._pool.wait_for_work(generation, self._pool.floors.full_in())
            elif not self._pool.drain:
                self._pool.wait_for_work(generation)
            elif self._pool.busy(besides=self):
                self._pool.wait_for_work(generation, _DRAIN_RECHECK)
            else:
                break
        self._flush()

    def _claim(self, wanted: Claim) -> bool:
        """Write what is done and claim the next batch; false where the database could not be asked."""
        started = time.monotonic()
        try:
            batch = self.done.flush(self._connection, wanted=wanted)
        except UNAVAILABLE as error:
            self._pool.stopping.wait(self._outage.failed(error))
            return False
        self._outage.passed()
        self._pool.claimed(wanted, batch, time.monotonic() - started)
        self.trusted_until = started + self._pool.lease.total_seconds()
        self._waiting.extend(batch)
        return True

    def _take_over(self) -> bool:
        taken = self._pool.take_over(self)
        if taken is None:
            return False
        job, self.trusted_until = taken
        self._waiting.append(job)
        return True

    def _run_batch(self) -> None:
        """Run what waits; what is done at the end is written together with the next claim."""
        connections = HandlerConnections()
        while not self._pool.stopping.is_set():
            if self.done and self._flush_is_due():
                # Before the next job is taken: this may wait out an outage, and a lease with it.
                self._flush()
                continue
            try:
                job = self._waiting.popleft()
            except IndexError:
                break
            if time.monotonic() > self.trusted_until:
                # Suspended for longer than the lease: another worker may hold this job by now.
                log.warning(
                    LogEvent.LEASE_LOST, extra={"job_id": job.id, "type": job.type}
                )
                continue
            self._execute(job, connections)
        for job in self.pop_all_waiting():
            self.done.add(job, NOT_BEGUN)

    def _execute(self, job: LeasedJob, connections: HandlerConnections) -> None:
        execution = Execution(job)
        self.execution = execution
        if self._pool.stopping.is_set():
            execution.context.notify_stop()
        outcome = execution.run(connections)
        seconds = time.monotonic() - execution.context.started
        self._pool.estimates.record(job.type, job.queue, seconds)
        # In this order, so that a job whose handler has ended is never given back as interrupted.
        self.execution = None
        if outcome is not None:
            self.done.add(job, outcome)

    def _flush_is_due(self) -> bool:
        if self.done.age() >= FLUSH_AFTER:
            return True
        try:
            upcoming = self._waiting[0]
        except IndexError:
            return False
        return self._pool.estimates.cost(upcoming.type) >= _SLOW

    def _flush(self) -> None:
        """Write what is done; while the database is away, hold it in memory and try again."""
        while self.done:
            try:
                self.done.flush(self._connection)
            except UNAVAILABLE as error:
                # Not on the pool's stop event: a stop must not turn this into a busy loop.
                threading.Event().wait(self._outage.failed(error))
            else:
                self._outage.passed()

    def running_for(self) -> float:
        """Seconds since the execution under way began; 0 where there is none."""
        execution = self.execution
        return time.monotonic() - execution.context.started if execution else 0.0

    def has_work(self) -> bool:
        return self.execution is not None or bool(self._waiting) or bool(self.done)

    def held(self) -> list[LeasedJob]:
        execution = self.execution
        running = [] if execution is None else [execution.job]
        return [*running, *self._waiting, *self.done.jobs()]

    def pop_last_waiting(self) -> LeasedJob | None:
        """Take the job that this thread would run last, or None."""
        try:
            return self._waiting.pop()
        except IndexError:
            return None

    def pop_all_waiting(self) -> list[LeasedJob]:
        """Take everything that this thread has not begun."""
        jobs = []
        while (job := self.pop_last_waiting()) is not None:
            jobs.append(job)
        return jobs

    def extended(self, trusted_until: float, lost: Collection[LeaseKey]) -> None:
        """Take in a heartbeat; see :meth:`jobs.pool.Pool.extended`."""
        execution = self.execution
        if execution is not None and execution.job.key in lost:
            log.warning(
                LogEvent.LEASE_LOST,
                extra={
                    "job_id": execution.job.id,
                    "type": execution.job.type,
                    "lease_seq": execution.job.lease_seq,
                },
            )
            execution.context.notify_lease_lost()
        for job in [job for job in list(self._waiting) if job.key in lost]:
            try:
                self._waiting.remove(job)
            except (ValueError, IndexError):
                continue  # taken by its thread in the meantime; its result is fenced
        self.trusted_until = max(self.trusted_until, trusted_until)
