"""The threads that do the work: each claims a batch, runs it, and writes what became of it in one statement.

Batches are never handed from thread to thread job by job (measured: a factor of 20, by the interpreter's lock).
Only what waits behind a slow job is taken over by an idle thread, or given back to the table.
"""

from __future__ import annotations

import datetime as dt
import random
import threading
import time
from collections.abc import Collection, Iterable, Sequence

from django.conf import settings

from jobs import claims, registry
from jobs.bounded import BoundedConnection
from jobs.claims import Claim
from jobs.connection import UNAVAILABLE
from jobs.crew import Crew
from jobs.estimates import Estimates
from jobs.execution import Execution
from jobs.floors import Floors
from jobs.handler_connections import HandlerConnections
from jobs.journal import Journal
from jobs.lease_lengths import STUCK_AFTER, LeaseLengths
from jobs.leases import LeasedJob, LeaseKey
from jobs.models import Priority
from jobs.orphans import Orphans
from jobs.outbox import Outbox
from jobs.outcomes import NOT_BEGUN, interrupted
from jobs.progress import Progress
from jobs.selection import Queues
from jobs.thread import WorkerThread

_SHARED_FROM = 0.01
"""Seconds of work in a batch from which on an idle thread is woken, to take over some of it."""

_LOOK_EVERY = 1.0
"""Seconds between two looks for handlers that hang while the pool waits for its threads' end."""

_UNKNOWN_TYPES_EVERY = 30.0
_UNKNOWN_TYPES_BATCH = 100


class Pool:
    """``threads`` worker threads over one set of queues.

    With ``drain`` the threads end when nothing is due any more; otherwise they wait for work until
    :meth:`stop`. From ``max_jobs`` executed jobs on they claim no more, and wait for it too. ``lease`` is how long the leases
    last of those types that have no length of their own when the pool is made.
    """

    def __init__(
        self,
        *,
        worker: str,
        threads: int,
        queues: Queues,
        lease: dt.timedelta,
        drain: bool = False,
        max_jobs: int | None = None,
    ) -> None:
        self.worker = worker
        self.queues = queues
        self.leases = LeaseLengths(lease, registry.own_leases())
        self.estimates = Estimates()
        self.floors = Floors()
        self.journal: Journal | None = None
        self.orphans = Orphans(worker, self._asking)
        self.drain = drain
        self.stopping = threading.Event()
        self._condition = threading.Condition()
        self._generation = 0
        self.tending = Progress("acw-main")
        self._connection = BoundedConnection(self.tending)
        self._returns = Outbox(worker)
        self._unknown_types_due = (
            time.monotonic() + random.uniform(0, 1) * _UNKNOWN_TYPES_EVERY  # noqa: S311
        )
        self._max_jobs = max_jobs
        self.crew = Crew(lambda number: WorkerThread(self, number), threads)

    @property
    def threads(self) -> list[WorkerThread]:
        """The threads at work: one that hangs is replaced."""
        return self.crew.working

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def wake(self) -> None:
        """Have a waiting thread look for work now, and those that are looking look again.

        One only: where there is more than it takes, it wakes the next.
        """
        with self._condition:
            self._generation += 1
            self._condition.notify()

    @property
    def generation(self) -> int:
        """Changes with every wake-up: read before a claim, so that none is missed between claim and wait."""
        return self._generation

    def wait_for_work(self, generation: int, seconds: float | None = None) -> None:
        """Wait for a wake-up after ``generation``, at most a poll interval, jittered so that threads spread."""
        poll: dt.timedelta = settings.JOBS_POLL_INTERVAL
        longest = poll.total_seconds() * random.uniform(0.8, 1.2)  # noqa: S311
        seconds = longest if seconds is None else min(seconds, longest)
        with self._condition:
            self._condition.wait_for(
                lambda: self._generation != generation or self.stopping.is_set(),
                seconds,
            )

    def claim_wanted(self) -> Claim:
        """What a thread of this pool asks for next."""
        return Claim(
            worker=self.worker,
            leases=self.leases,
            limits={
                (queue, priority): self.estimates.limit(queue, priority)
                for queue in self.queues.names()
                for priority in Priority
            },
            costs=self.estimates.costs(registry.job_types()),
            floors=self.floors.next(),
        )

    def claimed(self, wanted: Claim, jobs: Sequence[LeasedJob], seconds: float) -> None:
        """Learn from a claim, and how long it took, what to ask for next."""
        given = self.estimates.claimed(jobs)
        more_is_due = any(number >= wanted.limits[key] for key, number in given.items())
        if more_is_due or _worth_sharing(wanted, jobs):
            self.wake()
        self.floors.claimed(jobs)
        if not wanted.floors:
            self.floors.full(seconds, {queue for queue, _ in wanted.limits})

    def take_over(self, taker: WorkerThread) -> tuple[LeasedJob, float] | None:
        """A job that waits behind another thread's running one, and when (monotonic) its lease last began anew."""
        for thread in self.threads:
            if thread is not taker and thread.running_for() > 0:
                leased_at = thread.leased_at
                job = thread.pop_last_waiting()
                if job is not None:
                    return job, leased_at
        return None

    def busy(self, besides: WorkerThread) -> bool:
        """Whether another thread has work in hand, which may yet bring more."""
        return any(
            thread.has_work() for thread in self.threads if thread is not besides
        )

    def held(self) -> list[LeasedJob]:
        """Everything whose lease is this pool's: waiting, running, or decided and not yet written."""
        return self.crew.held() + self._returns.jobs()

    def has_done_enough(self) -> bool:
        """Whether so many jobs were executed that no more are to be claimed. Asked once a batch."""
        return self._max_jobs is not None and self.crew.executed() >= self._max_jobs

    def running(self) -> list[Execution]:
        """The executions under way."""
        return [execution for thread in self.threads if (execution := thread.execution)]

    def extended(self, began: float, lost: Collection[LeaseKey]) -> None:
        """Take in a heartbeat: when it began (monotonic) to extend the leases, and which have passed on."""
        for thread in self.threads:
            thread.extended(began, lost)

    def cancel(self, wanted: Collection[LeaseKey]) -> None:
        """Tell the handlers of these that they are to be cancelled, and give back those that have not begun."""
        if wanted:
            for thread in self.threads:
                self._give_back(thread.cancel(wanted))

    def tend(self) -> None:
        """Called every second or so: fail what hangs, free what is stuck behind slow jobs, take in types that nobody knows.

        Raises what ``UNAVAILABLE`` holds while the database is away; nothing is lost by that.
        """
        self._write_off_hanging()
        for thread in self.threads:
            if thread.running_for() > STUCK_AFTER:
                self._give_back(thread.pop_all_waiting())
        self._give_back(self.orphans.look(self._connection, self.held))
        given_back = bool(self._returns)
        self.flush()
        if given_back:
            self.wake()
        if time.monotonic() >= self._unknown_types_due:
            self._unknown_types_due = time.monotonic() + _UNKNOWN_TYPES_EVERY
            self._take_unknown_types()

    def flush(self) -> None:
        """Write what is to be given back, and what is done by threads that are in a slow handler.

        Raises what ``UNAVAILABLE`` holds; what was not written then is still held.
        """
        self._returns.flush(self._connection)
        self.crew.flush_written_off(self._connection)
        for thread in self.threads:
            if thread.running_for() > STUCK_AFTER or self.stopping.is_set():
                thread.done.flush(self._connection, wait=False)

    def has_unwritten(self) -> bool:
        """Whether an outcome is not in the table yet."""
        return bool(self._returns) or self.crew.has_unwritten()

    def stop(self) -> None:
        """Claim no more, ask the running handlers to come to an end, and have given back what was not begun."""
        self.stopping.set()
        with self._condition:
            self._condition.notify_all()
        for execution in self.running():
            execution.context.notify_stop()
        for thread in self.threads:
            self._give_back(thread.pop_all_waiting())

    def join(self, deadline: float) -> bool:
        """Wait for the threads until ``deadline`` (monotonic); return whether all have ended.

        Those are not waited for whose handlers hang.
        """
        while alive := [thread for thread in self.threads if thread.is_alive()]:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            alive[0].join(min(left, _LOOK_EVERY))
            self._write_off_hanging()
        return True

    def abandon(self) -> list[LeasedJob]:
        """Have the leases given back of the executions that did not end in time, and return these jobs.

        What the handlers still do can't be written any more: their leases have passed on.
        """
        error = f"interrupted: still running {settings.JOBS_SHUTDOWN_GRACE} after the worker was told to stop"
        abandoned = self.crew.take_executing()
        for job in abandoned:
            self._returns.add(job, interrupted(error))
        return abandoned

    def give_back_orphans(self) -> None:
        """Called when no thread claims any more. Raises what ``UNAVAILABLE`` holds."""
        self._give_back(self.orphans.look(self._connection, self.held, last=True))

    def _asking(self) -> list[float]:
        since = [thread.asking_since for thread in self.threads]
        return [began for began in since if began is not None]

    def close(self) -> None:
        self._connection.close()

    def _write_off_hanging(self) -> None:
        """Fail the jobs whose handlers hang, and have other threads in the place of theirs."""
        replace = not self.stopping.is_set()
        for job, outcome in self.crew.write_off_hanging(replace=replace):
            self._returns.add(job, outcome)

    def _take_unknown_types(self) -> None:
        """They fail without a handler being called, so no thread is needed; a batch at a time until none is left."""
        connections = HandlerConnections()
        while not self.stopping.is_set():
            began = time.monotonic()
            try:
                jobs = claims.claim_unknown(
                    self._connection,
                    self.claim_wanted(),
                    grace=settings.JOBS_UNKNOWN_TYPE_GRACE,
                    most=_UNKNOWN_TYPES_BATCH,
                )
            except UNAVAILABLE:
                self.orphans.suspect(began)
                raise
            for job in jobs:
                if (outcome := Execution(job).run(connections)) is not None:
                    self._returns.add(job, outcome)
            self._returns.flush(self._connection)
            if len(jobs) < _UNKNOWN_TYPES_BATCH:
                break

    def _give_back(self, jobs: Iterable[LeasedJob]) -> None:
        """Have leased jobs returned whose handlers were not called; their attempts are given back."""
        for job in jobs:
            self._returns.add(job, NOT_BEGUN)


def _worth_sharing(wanted: Claim, jobs: Sequence[LeasedJob]) -> bool:
    seconds = sum(wanted.costs[job.type] for job in jobs)
    # A batch that takes up the budget is one that was cut off: there may be more behind it.
    return seconds >= wanted.budget or (len(jobs) > 1 and seconds > _SHARED_FROM)
