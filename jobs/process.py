"""One ``runjobs`` process: starts its parts, watches them, and stops them in order."""

from __future__ import annotations

import datetime as dt
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from django.conf import settings

from jobs import claims
from jobs.bounded import BoundedConnection
from jobs.connection import UNAVAILABLE, Outage, QueueConnection
from jobs.ending import (
    ANSWER_WITHIN,
    Guard,
    exit_now,
    persist,
    persist_or_leave,
    shutdown_limit,
)
from jobs.events import LogEvent
from jobs.heartbeat import Heartbeat
from jobs.journal import open_journal
from jobs.listener import Listener
from jobs.part import Part
from jobs.periodic import Periodic
from jobs.pool import Pool
from jobs.presence import Presence
from jobs.progress import Progress, look_every
from jobs.recovery import Recovery
from jobs.recycling import NO_LIMITS, Limits
from jobs.selection import Queues
from jobs.stop_signals import StopSignals
from jobs.thread import WorkerThread
from jobs.watchdog import Watch, Watchdog, report

log = logging.getLogger(__name__)

EXIT_CLEAN = 0
EXIT_PART_FAILED = 1
EXIT_SHUTDOWN_TIMEOUT = 3

_TEND_EVERY = 1.0
_MAIN_REACTS_WITHIN = 2.0
_PARTS_END_WITHIN = 2.0
_LAST_WRITES_WITHIN = 2.0
_DISCOVER_WITHIN = 10.0


def worker_name() -> str:
    """A name for this process that no other process has or had: host, process id, random part."""
    return f"{settings.ACW_HOST}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


class Worker:
    """A process that takes and runs jobs until it is told to stop, or, with ``drain``, until nothing is due.

    ``threads`` defaults to ``JOBS_WORKERS``; ``queues`` None is every queue but other hosts'. A draining
    worker runs no periodic runners. At its ``limits`` it stops as if it was told to.
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        queues: Iterable[str] | None = None,
        drain: bool = False,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.name = worker_name()
        lease: dt.timedelta = settings.JOBS_JOB_REAPER_LEASE_TIMEOUT
        self.pool = Pool(
            worker=self.name,
            threads=threads or settings.JOBS_WORKERS,
            queues=Queues(queues),
            lease=lease,
            drain=drain,
            max_jobs=limits.max_jobs,
        )
        self._limits = limits
        self._drain = drain
        # Event.set() takes a lock that the interrupted thread may hold; this queue's put() may be interrupted by itself.
        self._stop_requests: SimpleQueue[None] = SimpleQueue()
        self._stopped = False
        self._stalled = False
        self._shutting_down = threading.Event()
        self._one_shuts_down = threading.Lock()
        self._presence = Presence(self.pool)
        self._watchdog = Watchdog(
            self._presence,
            worker=self.name,
            watched=self._progress,
            end=self._end_stalled,
        )
        self._heartbeat = Heartbeat(self.pool, self._presence)
        self._listener = Listener(self.pool)
        self._periodic = None if drain else Periodic(self.name)
        self._outage = Outage("process")
        self._recovery = Recovery()

    def stop(self) -> None:
        """Ask for a clean stop; safe in a signal handler and from any thread."""
        self._stop_requests.put(None)

    def run(self) -> int:
        """Run until stopped or drained; return the exit status."""
        with StopSignals(self.stop):
            log.info(
                LogEvent.MODULE_STARTED,
                extra={
                    "worker": self.name,
                    "threads": len(self.pool.threads),
                    "queues": self.pool.queues.names(),
                },
            )
            if self._drain:
                # Queues that no registered type names are otherwise found by the first heartbeat.
                until = time.monotonic() + _DISCOVER_WITHIN
                persist(self._discover, self._outage, until=until)
            persist(self._recovery.look, self._outage, until=time.monotonic())
            self.pool.journal = open_journal(self.name)
            self.pool.start()
            for part in self._parts():
                part.start()
            failed = self._watch()
            status = self._shut_down()
        return EXIT_PART_FAILED if failed or self._stalled else status

    def _wait_for_stop(self, seconds: float) -> bool:
        """Wait for :meth:`stop`, at most so long; return whether it was called."""
        until = time.monotonic() + seconds
        while not self._stopped:
            self.pool.tending.moved()
            left = until - time.monotonic()
            if left <= 0:
                break
            with suppress(Empty):
                self._stop_requests.get(timeout=min(left, look_every()))
                self._stopped = True
        return self._stopped

    def _parts(self) -> list[Part]:
        parts: list[Part | None] = [self._heartbeat, self._listener, self._periodic]
        return [self._watchdog, *(part for part in parts if part is not None)]

    def _progress(self) -> list[Progress]:
        """Of all that the watchdog watches."""
        signs = [self._heartbeat.progress, self._listener.progress, self.pool.tending]
        if self._periodic is not None:
            signs += [self._periodic.progress, *self._periodic.ticks_under_way()]
        return signs

    def _end_stalled(self) -> None:
        """Called by the watchdog: the main thread shuts down, and where that is what hangs, another in its place."""
        self._stalled = True
        self.stop()
        if self._shutting_down.wait(_MAIN_REACTS_WITHIN):
            return
        stand_in = threading.Thread(
            target=self._shut_down, name="acw-shutdown", daemon=True
        )
        stand_in.start()
        stand_in.join(shutdown_limit())
        exit_now(EXIT_PART_FAILED)

    def _watch(self) -> bool:
        """Wait for the end; return whether a part failed, which ends the process, for its supervisor to restart."""
        watch, looked_at = Watch(self._watchdog.progress), time.monotonic()
        while not self._wait_for_stop(_TEND_EVERY if not self._drain else 0.05):
            now = time.monotonic()
            watch.look(now - looked_at)
            looked_at = now
            if watch.too_long:
                report(watch, worker=self.name)
                return True
            watched: list[WorkerThread | Part] = [*self.pool.threads, *self._parts()]
            for thread in watched:
                if not thread.is_alive() and (
                    thread.error is not None or not self._drain
                ):
                    log.critical(
                        LogEvent.MODULE_PART_FAILED,
                        extra={"worker": self.name, "part": thread.name},
                        exc_info=thread.error,
                    )
                    return True
            if self._drain and not any(
                thread.is_alive() for thread in self.pool.threads
            ):
                return False
            try:
                self._recovery.look()
                self.pool.tend()
            except UNAVAILABLE as error:
                self._wait_for_stop(self._outage.failed(error))
            else:
                self._outage.passed()
            if self.pool.crew.has_lost_too_many():
                log.critical(
                    LogEvent.MODULE_THREADS_LOST,
                    extra={
                        "worker": self.name,
                        "hanging": self.pool.crew.hanging(),
                        "threads": len(self.pool.threads),
                        "advice": "handlers hang and the process ends for its supervisor to restart it: mend those "
                        "that job.timeout names; where they hang is in the tracebacks of their jobs' attempts",
                    },
                )
                return True
            if reached := self._limits.reached(self.pool.crew.executed()):
                if "max_jobs" in reached and self.pool.running():
                    continue  # nothing more is claimed: what runs may take its time
                log.info(
                    LogEvent.MODULE_RECYCLING, extra={"worker": self.name, **reached}
                )
                break
        return False

    def _shut_down(self) -> int:
        self._shutting_down.set()
        self._watchdog.stop()
        status = EXIT_PART_FAILED if self._stalled else EXIT_SHUTDOWN_TIMEOUT
        guard = Guard(shutdown_limit(), status=status)
        try:
            # A main thread that comes back while another shuts down in its place waits for that one.
            with self._one_shuts_down:
                return self._stop_in_order()
        finally:
            guard.off()

    def _stop_in_order(self) -> int:
        grace: dt.timedelta = settings.JOBS_SHUTDOWN_GRACE
        deadline = time.monotonic() + grace.total_seconds()
        log.info(
            LogEvent.MODULE_STOPPING,
            extra={"worker": self.name, "grace": grace.total_seconds()},
        )
        if self._periodic is not None:
            self._periodic.stop()
        self.pool.stop()
        self._write_last(self.pool.flush, until=time.monotonic())
        finished = self.pool.join(deadline)
        ticks = (
            self._periodic.join_ticks(deadline) if self._periodic is not None else []
        )
        if not finished or ticks:
            jobs = self.pool.abandon()
            log.error(
                LogEvent.MODULE_SHUTDOWN_TIMEOUT,
                extra={
                    "worker": self.name,
                    "grace": grace.total_seconds(),
                    "jobs": [f"{job.type} {job.id}" for job in jobs],
                    "runners": ticks,
                },
            )
        last_moment = max(deadline, time.monotonic() + _LAST_WRITES_WITHIN)
        self._write_last(self.pool.give_back_orphans, until=time.monotonic())
        written = self._write_last(self.pool.flush, until=last_moment)
        clean = finished and not ticks and not self.pool.has_unwritten()
        status = EXIT_CLEAN if clean else EXIT_SHUTDOWN_TIMEOUT
        # The heartbeat goes last: until here it kept the leases of what was still running.
        self._heartbeat.stop()
        self._listener.stop()
        parts_end_by = time.monotonic() + _PARTS_END_WITHIN
        for part in self._parts():
            if part is not threading.current_thread():
                part.join(max(0.0, parts_end_by - time.monotonic()))
        self._write_last(self._sign_off, until=time.monotonic())
        if written:
            self.pool.close()
        if self.pool.journal is not None and not self.pool.has_unwritten():
            self.pool.journal.close()
        log.info(
            LogEvent.MODULE_STOPPED, extra={"worker": self.name, "exit_status": status}
        )
        return status

    def _discover(self) -> None:
        with QueueConnection() as connection:
            self.pool.queues.discover(claims.pending_queues(connection))

    def _sign_off(self) -> None:
        with BoundedConnection(seconds=ANSWER_WITHIN) as connection:
            self._presence.sign_off(connection)

    def _write_last(self, step: Callable[[], Any], *, until: float) -> bool:
        return persist_or_leave(step, self._outage, until=until)
