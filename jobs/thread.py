"""One worker thread: its batch, the execution under way, and the outcomes that are not yet written."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Collection
from typing import TYPE_CHECKING

from django.db import connections

from jobs import claims, registry
from jobs.connection import UNAVAILABLE, Outage, QueueConnection
from jobs.context import JobContext
from jobs.events import LogEvent
from jobs.executor import execute
from jobs.finisher import write
from jobs.leases import LeasedJob
from jobs.outcomes import Outcome

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

    def run(self) -> Outcome | None:
        """See :func:`jobs.executor.execute`."""
        return execute(self.job, self.context)


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
        self._trusted_until = 0.0
        self._done: list[tuple[LeasedJob, Outcome]] = []
        self._done_since = 0.0
        self._done_lock = threading.Lock()
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
            if self._claim() or self._take_over():
                self._run_batch()
            elif not self._pool.drain:
                self._pool.wait_for_work(generation)
            elif self._pool.busy(besides=self):
                self._pool.wait_for_work(generation, _DRAIN_RECHECK)
            else:
                return

    def _claim(self) -> bool:
        trusted_until = time.monotonic() + self._pool.lease.total_seconds()
        try:
            batch = claims.claim(self._connection, self._pool.claim_wanted())
        except UNAVAILABLE as error:
            self._pool.stopping.wait(self._outage.failed(error))
            return False
        self._outage.passed()
        self._trusted_until = trusted_until
        self._waiting.extend(batch)
        return bool(batch)

    def _take_over(self) -> bool:
        self._waiting.extend(self._pool.take_over(self))
        return bool(self._waiting)

    def _run_batch(self) -> None:
        while not self._pool.stopping.is_set():
            try:
                job = self._waiting.popleft()
            except IndexError:
                break
            if time.monotonic() > self._trusted_until:
                # Suspended for longer than the lease: another worker may hold this job by now.
                log.warning(
                    LogEvent.LEASE_LOST, extra={"job_id": job.id, "type": job.type}
                )
                continue
            if self._done and self._flush_before(job):
                self._flush()
            self._execute(job)
        else:
            self._pool.give_back(self.pop_all_waiting())
        self._flush()

    def _execute(self, job: LeasedJob) -> None:
        execution = Execution(job)
        self.execution = execution
        if self._pool.stopping.is_set():
            execution.context.notify_stop()
        outcome = execution.run()
        now = time.monotonic()
        self._pool.estimates.record(
            job.type, job.queue, now - execution.context.started
        )
        with self._done_lock:
            if outcome is not None:
                if not self._done:
                    self._done_since = now
                self._done.append((job, outcome))
            self.execution = None

    def _flush_before(self, job: LeasedJob) -> bool:
        return (
            self._pool.estimates.cost(job.type) >= _SLOW
            or time.monotonic() - self._done_since >= FLUSH_AFTER
        )

    def _flush(self) -> None:
        """Write what is done; while the database is away, hold it in memory and try again."""
        while self._done:
            try:
                self.flush_done(self._connection)
            except UNAVAILABLE as error:
                # Not on the pool's stop event: a stop must not turn this into a busy loop.
                threading.Event().wait(self._outage.failed(error))
            else:
                self._outage.passed()

    def flush_done(self, connection: QueueConnection) -> None:
        """Write the outcomes so far. Also called by the pool, while this thread is in a slow handler."""
        with self._done_lock:
            write(connection, self._done, worker=self._pool.worker)

    def running_for(self) -> float:
        """Seconds since the execution under way began; 0 where there is none."""
        execution = self.execution
        return time.monotonic() - execution.context.started if execution else 0.0

    def has_work(self) -> bool:
        return self.execution is not None or bool(self._waiting) or bool(self._done)

    def held(self) -> list[LeasedJob]:
        with self._done_lock:
            held = [job for job, _ in self._done]
            if self.execution is not None:
                held.append(self.execution.job)
        return held + list(self._waiting)

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

    def extended(self, trusted_until: float, lost: Collection[uuid.UUID]) -> None:
        """Take in a heartbeat; see :meth:`jobs.pool.Pool.extended`."""
        execution = self.execution
        if execution is not None and execution.job.id in lost:
            log.warning(
                LogEvent.LEASE_LOST,
                extra={
                    "job_id": execution.job.id,
                    "type": execution.job.type,
                    "lease_seq": execution.job.lease_seq,
                },
            )
            execution.context.notify_lease_lost()
        for job in [job for job in list(self._waiting) if job.id in lost]:
            try:
                self._waiting.remove(job)
            except (ValueError, IndexError):
                continue  # taken by its thread in the meantime; its result is fenced
        self._trusted_until = max(self._trusted_until, trusted_until)
