"""One worker thread: its batch, the execution under way, and the outcomes that are not yet written."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from django.db import connections

from jobs import claims, thread_connection
from jobs.claims import Claim
from jobs.connection import UNAVAILABLE, Outage, QueueConnection
from jobs.events import LogEvent
from jobs.execution import Execution
from jobs.floors import SLOW
from jobs.handler_connections import HandlerConnections
from jobs.journal import Slot
from jobs.leases import LeasedJob, LeaseKey
from jobs.outbox import Outbox
from jobs.outcomes import COMPLETED, COMPLETED_AND_DELETED, NOT_BEGUN

if TYPE_CHECKING:
    from jobs.pool import Pool

log = logging.getLogger(__name__)

FLUSH_AFTER = 0.05
"""Seconds that an outcome may wait for others to be written with it."""

_SLOW = FLUSH_AFTER
"""Seconds from which on a job's outcome-in-waiting predecessors are written before it starts."""

_DRAIN_RECHECK = 0.05

_COMPLETE = (COMPLETED, COMPLETED_AND_DELETED)


class _TakenAway(Exception):
    """The outcome of this thread's execution was decided by another thread: this one has nothing more to do."""


class WorkerThread(threading.Thread):
    """Claims, runs and finishes batches until its pool stops or, draining, nothing is due.

    The thread itself takes jobs from the left of ``_waiting``; whoever helps takes from the right. Deques make
    both safe without a lock. ``_executing`` holds the execution under way: whoever gets it out of there decides what
    becomes of the job, the thread itself at the handler's end or another one that does not wait for that. ``leased_at`` is when
    (monotonic) the leases of what waits were last known to begin: each is trusted for its own length from then on.
    """

    def __init__(self, pool: Pool, number: int) -> None:
        super().__init__(name=f"acw-worker-{number}", daemon=True)
        self.error: BaseException | None = None
        self._pool = pool
        self._connection = QueueConnection()
        self._waiting: deque[LeasedJob] = deque()
        self._executing: deque[Execution] = deque()
        self.leased_at = 0.0
        self.done = Outbox(pool.worker)
        self.asking_since: float | None = None
        self._noted: Slot | None = None
        self._outage = Outage(self.name)

    def run(self) -> None:
        thread_connection.lend(self._connection)
        journal = self._pool.journal
        self._noted = journal.slot() if journal is not None else None
        try:
            self._work()
        except _TakenAway:
            pass  # what was decided in its place may not be in the table yet
        except BaseException as error:
            self.error = error
        else:
            self.forget()
        finally:
            self._connection.close()
            connections.close_all()

    def forget(self) -> None:
        """Called when everything that it did is in the table, and whatever was decided in its place."""
        noted, self._noted = self._noted, None
        if self._pool.journal is not None and noted is not None:
            self._pool.journal.give_back(noted)

    def _work(self) -> None:
        while not self._pool.stopping.is_set():
            generation = self._pool.generation
            wanted = self._pool.claim_wanted()
            if not self._claim(wanted):
                continue
            if self._waiting or self._take_over():
                self._run_batch()
                if self._pool.has_done_enough():
                    self._pool.stopping.wait()
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
        self.asking_since = started = time.monotonic()
        try:
            batch = self.done.flush(self._connection, wanted=wanted)
            seconds = time.monotonic() - started
        except UNAVAILABLE as error:
            self.asking_since = None
            self._pool.orphans.suspect(started)
            self._pool.stopping.wait(self._outage.failed(error))
            return False
        self._outage.passed()
        self._pool.claimed(wanted, batch, seconds)
        self.leased_at = started
        self._waiting.extend(batch)
        self.asking_since = None
        if seconds > SLOW and not wanted.floors:
            self._pass_over(wanted)
        return True

    def _pass_over(self, wanted: Claim) -> None:
        """Have the next claims not look again where a slow one finds nothing."""
        with suppress(*UNAVAILABLE):
            barren, before = claims.barren(self._connection, wanted)
            if before is not None:
                self._pool.floors.pass_over(barren, before)

    def _take_over(self) -> bool:
        taken = self._pool.take_over(self)
        if taken is None:
            return False
        job, self.leased_at = taken
        self._waiting.append(job)
        return True

    def _run_batch(self) -> None:
        """Run what waits; what is done at the end is written together with the next claim."""
        connections, leases = HandlerConnections(), self._pool.leases
        if self._noted is not None and not self.done:
            self._noted.reset()
        while not self._pool.stopping.is_set():
            if self.done and self._flush_is_due():
                # Before the next job is taken: this may wait out an outage, and a lease with it.
                self._flush()
                continue
            try:
                job = self._waiting.popleft()
            except IndexError:
                break
            if time.monotonic() - self.leased_at > leases.seconds(job.type):
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
        self._executing.append(execution)
        if self._pool.stopping.is_set():
            execution.context.notify_stop()
        if self._noted is not None:
            self._noted.begin(job)
        outcome = execution.run(connections)
        if self._noted is not None and outcome in _COMPLETE:
            self._noted.done()
        seconds = time.monotonic() - execution.context.started
        try:
            self._executing.pop()
        except IndexError:
            raise _TakenAway from None
        self._pool.estimates.record(job.type, job.queue, seconds)
        if outcome is not None:
            self.done.add(job, outcome)
        else:
            self.done.written += 1

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

    @property
    def execution(self) -> Execution | None:
        """The execution under way."""
        try:
            return self._executing[0]
        except IndexError:
            return None

    def take_from(self, execution: Execution) -> bool:
        """Decide in this thread's place what becomes of the execution; false where its handler has ended.

        The thread drops what the handler still returns or raises, and ends. Others must write what it did before.
        """
        try:
            self._executing.remove(execution)
        except (ValueError, IndexError):
            return False
        return True

    def executed(self) -> int:
        """About how many jobs it has executed."""
        return self.done.written + len(self.done)

    def running_for(self) -> float:
        """Seconds since the execution under way began; 0 where there is none."""
        execution = self.execution
        return time.monotonic() - execution.context.started if execution else 0.0

    def has_work(self) -> bool:
        return bool(self._executing or self._waiting or self.done)

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

    def cancel(self, wanted: Collection[LeaseKey]) -> list[LeasedJob]:
        """Tell the handler under way, where its job is among those; return what has not begun and waits no more."""
        execution = self.execution
        if execution is not None and execution.job.key in wanted:
            execution.context.notify_cancel()
        return [
            job
            for job in list(self._waiting)
            if job.key in wanted and self._take_out(job)
        ]

    def _take_out(self, job: LeasedJob) -> bool:
        """Remove a waiting job; false where its thread has taken it in the meantime."""
        try:
            self._waiting.remove(job)
        except (ValueError, IndexError):
            return False
        return True

    def extended(self, began: float, lost: Collection[LeaseKey]) -> None:
        """Take in a heartbeat; see :meth:`jobs.pool.Pool.extended`."""
        execution = self.execution
        if (
            execution is not None
            and execution.job.key in lost
            and not execution.context.settling
        ):
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
            self._take_out(job)  # or its thread has begun it; its result is fenced
        self.leased_at = max(self.leased_at, began)
