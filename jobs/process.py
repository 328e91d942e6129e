"""One ``runjobs`` process: starts its parts, watches them, and stops them in order."""

from __future__ import annotations

import datetime as dt
import logging
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from django.conf import settings

from jobs import claims
from jobs.connection import UNAVAILABLE, Outage, QueueConnection
from jobs.events import LogEvent
from jobs.heartbeat import Heartbeat
from jobs.listener import Listener
from jobs.part import Part
from jobs.periodic import Periodic
from jobs.pool import Pool
from jobs.selection import Queues
from jobs.thread import WorkerThread

log = logging.getLogger(__name__)

EXIT_CLEAN = 0
EXIT_PART_FAILED = 1
EXIT_SHUTDOWN_TIMEOUT = 3

_TEND_EVERY = 1.0
_PARTS_END_WITHIN = 2.0
_LAST_WRITES_WITHIN = 2.0
_DISCOVER_WITHIN = 10.0

_GONE = "DELETE FROM job_workers WHERE name = %(name)s"


def worker_name() -> str:
    """A name for this process that no other process has or had: host, process id, random part."""
    return f"{settings.ACW_HOST}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


class Worker:
    """A process that takes and runs jobs until it is told to stop, or, with ``drain``, until nothing is due.

    ``threads`` defaults to ``JOBS_WORKERS``; ``queues`` None is every queue but other hosts'. A draining
    worker runs no periodic runners.
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        queues: Iterable[str] | None = None,
        drain: bool = False,
    ) -> None:
        self.name = worker_name()
        lease: dt.timedelta = settings.JOBS_JOB_REAPER_LEASE_TIMEOUT
        self.pool = Pool(
            worker=self.name,
            threads=threads or settings.JOBS_WORKERS,
            queues=Queues(queues),
            lease=lease,
            drain=drain,
        )
        self._drain = drain
        # Event.set() takes a lock that the interrupted thread may hold; this queue's put() may be interrupted by itself.
        self._stop_requests: SimpleQueue[None] = SimpleQueue()
        self._stopped = False
        self._heartbeat = Heartbeat(self.pool)
        self._listener = Listener(self.pool)
        self._periodic = None if drain else Periodic(self.name)
        self._outage = Outage("process")

    def stop(self) -> None:
        """Ask for a clean stop; safe in a signal handler and from any thread."""
        self._stop_requests.put(None)

    def run(self) -> int:
        """Run until stopped or drained; return the exit status."""
        with _Signals(self.stop):
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
                self._persist(self._discover, until=time.monotonic() + _DISCOVER_WITHIN)
            self.pool.start()
            for part in self._parts():
                part.start()
            failed = self._watch()
            status = self._shut_down()
        return EXIT_PART_FAILED if failed else status

    def _wait_for_stop(self, seconds: float) -> bool:
        """Wait for :meth:`stop`, at most so long; return whether it was called."""
        if not self._stopped:
            with suppress(Empty):
                self._stop_requests.get(timeout=seconds)
                self._stopped = True
        return self._stopped

    def _parts(self) -> list[Part]:
        parts: list[Part | None] = [self._heartbeat, self._listener, self._periodic]
        return [part for part in parts if part is not None]

    def _watch(self) -> bool:
        """Wait for the end; return whether a part failed, which ends the process, for its supervisor to restart."""
        while not self._wait_for_stop(_TEND_EVERY if not self._drain else 0.05):
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
                self.pool.tend()
            except UNAVAILABLE as error:
                self._wait_for_stop(self._outage.failed(error))
            else:
                self._outage.passed()
        return False

    def _shut_down(self) -> int:
        grace: dt.timedelta = settings.JOBS_SHUTDOWN_GRACE
        deadline = time.monotonic() + grace.total_seconds()
        log.info(
            LogEvent.MODULE_STOPPING,
            extra={"worker": self.name, "grace": grace.total_seconds()},
        )
        if self._periodic is not None:
            self._periodic.stop()
        self.pool.stop()
        self._persist(self.pool.flush, until=time.monotonic())
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
        self._persist(self.pool.flush, until=last_moment)
        clean = finished and not ticks and not self.pool.has_unwritten()
        status = EXIT_CLEAN if clean else EXIT_SHUTDOWN_TIMEOUT
        # The heartbeat goes last: until here it kept the leases of what was still running.
        self._heartbeat.stop()
        self._listener.stop()
        for part in self._parts():
            part.join(_PARTS_END_WITHIN)
        self._persist(self._sign_off, until=time.monotonic())
        log.info(
            LogEvent.MODULE_STOPPED, extra={"worker": self.name, "exit_status": status}
        )
        return status

    def _discover(self) -> None:
        with QueueConnection() as connection:
            self.pool.queues.discover(claims.pending_queues(connection))

    def _sign_off(self) -> None:
        with QueueConnection() as connection:
            connection.execute(_GONE, {"name": self.name})
        self.pool.close()

    def _persist(self, step: Callable[[], Any], *, until: float) -> None:
        """Do what needs the database, again and again until ``until`` (monotonic).

        Without it, the leases run out and the reaper does the rest.
        """
        while True:
            try:
                step()
            except UNAVAILABLE as error:
                left = until - time.monotonic()
                pause = self._outage.failed(error)
                if left <= 0:
                    return
                threading.Event().wait(min(pause, left))
            else:
                return


class _Signals:
    """SIGTERM and SIGINT stop the worker; the second one ends the process at once.

    The handler only sets an event. Off the main thread, where Python allows no handlers, it does nothing.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._seen = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._on_signal)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._seen:
            os._exit(128 + number)
        self._seen = True
        self._stop()
