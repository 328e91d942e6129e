"""The worker processes of a run, with a supervisor that starts a new one wherever one has ended."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

from acw.scratch.schema import MANAGE
from acw.torture.errors import TortureError
from acw.torture.job_types import EXIT_STATUS
from acw.torture.scratch import Scratch
from jobs.events import LogEvent
from jobs.process import EXIT_CLEAN, EXIT_SHUTDOWN_TIMEOUT

UP_WITHIN = 120.0
STOPPED_WITHIN = 30.0
"""Seconds that a worker may take to be at work, and to end after SIGTERM."""

_LOOK_EVERY = 0.05
_MOST_FAILURES = 5
_LOG_TAIL = 3_000
_LOG_HEAD = 20_000
_NOTE = """
INSERT INTO torture_processes (pid, started_at, ended_at, status, expected, log) VALUES (%s, %s, %s, %s, %s, %s)
"""


@dataclass(kw_only=True)
class Worker:
    """One process. ``expected`` are the statuses with which it may end: what was done to it says so."""

    process: subprocess.Popen[bytes]
    log: Path
    started_at: dt.datetime
    expected: set[int] = field(default_factory=lambda: {EXIT_STATUS})
    resumes_at: float | None = None
    leaving: bool = False

    @property
    def suspended(self) -> bool:
        return self.resumes_at is not None

    @property
    def at_work(self) -> bool:
        """Whether it has come up, as its log says, and was not told to stop."""
        return not self.leaving and LogEvent.MODULE_STARTED.encode() in self._begun()

    def _begun(self) -> bytes:
        with self.log.open("rb") as log:
            return log.read(_LOG_HEAD)


class Fleet:
    """So many workers from :meth:`start` to the block's end; they end with this process, however that ends."""

    def __init__(
        self,
        scratch: Scratch,
        *,
        workers: int,
        threads: int,
        settings: Mapping[str, str],
    ) -> None:
        self._scratch = scratch
        self._wanted = workers
        self._command = [sys.executable, str(MANAGE), "runjobs", f"--workers={threads}"]
        self._env = scratch.env(
            application_name=scratch.worker_sessions, TORTURE_TETHERED="1", **settings
        )
        self._workers: list[Worker] = []
        self._ended: list[tuple[Any, ...]] = []
        self._failures = 0
        self.started = 0

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.process.kill()
            worker.expected.add(-signal.SIGKILL)
        for worker in self._workers:
            worker.process.wait()
        self._bury()

    def tend(self) -> None:
        """Let go on what was suspended for long enough, and start a new one for each that has ended or is about to.

        Raises TortureError, with the end of its log, where workers don't come up.
        """
        self._bury()
        for worker in self._workers:
            if worker.resumes_at is not None and time.monotonic() >= worker.resumes_at:
                self._resume(worker)
        staying = sum(not worker.leaving for worker in self._workers)
        for _ in range(self._wanted - staying):
            self._workers.append(self._start())

    def await_up(self) -> None:
        """Wait until all are at work. Raises TortureError, with the end of a log, where that takes too long."""
        deadline = time.monotonic() + UP_WITHIN
        while len(self.at_work()) < self._wanted:
            self.tend()
            if time.monotonic() > deadline:
                said = "".join(map(_said, self._workers))
                raise TortureError(
                    f"the workers are not up after {UP_WITHIN:g} s: {said}"
                )
            time.sleep(_LOOK_EVERY)

    def at_work(self) -> list[Worker]:
        """Those that have come up, and were not told to stop."""
        return [worker for worker in self._workers if worker.at_work]

    def kill(self, worker: Worker) -> None:
        """End it by SIGKILL, also where it is suspended."""
        worker.expected.add(-signal.SIGKILL)
        worker.leaving = True
        worker.process.kill()

    def suspend(self, worker: Worker, seconds: float) -> None:
        """Stop it in its tracks, for so long."""
        worker.process.send_signal(signal.SIGSTOP)
        is_there = worker.process.returncode is None
        if is_there and hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
            # Until it stands: the system hangs up only on what does when this process is killed.
            flags = os.WSTOPPED | os.WEXITED | os.WNOWAIT
            os.waitid(os.P_PID, worker.process.pid, flags)
        worker.resumes_at = time.monotonic() + seconds

    def stop(self, worker: Worker) -> None:
        """Tell it to end, as a deploy does."""
        # By the signal itself where it has not come as far as to heed it.
        worker.expected |= {EXIT_CLEAN, EXIT_SHUTDOWN_TIMEOUT, -signal.SIGTERM}
        worker.leaving = True
        worker.process.terminate()

    def resume_all(self) -> None:
        """Let go on whatever is suspended."""
        for worker in self._workers:
            if worker.suspended:
                self._resume(worker)

    def stop_all(self) -> None:
        """Tell all to end, and wait for it; those that don't end in time are ended, which the checks report."""
        self.resume_all()
        for worker in self._workers:
            # A second signal would end at once what is ending already.
            if not worker.leaving:
                self.stop(worker)
        deadline = time.monotonic() + STOPPED_WITHIN
        for worker in self._workers:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, deadline - time.monotonic()))
                continue
            worker.process.kill()
            worker.process.wait()
        self._bury()

    def note(self, connection: psycopg.Connection[Any]) -> None:
        """Write down the processes that have ended since the last time."""
        with connection.cursor() as cursor:
            cursor.executemany(_NOTE, self._ended)
        self._ended.clear()

    def _resume(self, worker: Worker) -> None:
        worker.resumes_at = None
        worker.process.send_signal(signal.SIGCONT)

    def _start(self) -> Worker:
        self.started += 1
        log = self._scratch.logs / f"worker-{self.started}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - our own command
                self._command,
                env=self._env,
                # Never written to: its end tells the worker that this process has ended.
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A group of its own: what is suspended when this process is killed gets a hangup from the system.
                process_group=0,
            )
        return Worker(process=process, log=log, started_at=_now())

    def _bury(self) -> None:
        """Take note of those that have ended."""
        for worker in list(self._workers):
            status = worker.process.poll()
            if status is None:
                continue
            self._workers.remove(worker)
            if worker.process.stdin is not None:
                worker.process.stdin.close()
            expected = status in worker.expected
            self._ended.append(
                (
                    worker.process.pid,
                    worker.started_at,
                    _now(),
                    status,
                    expected,
                    str(worker.log.relative_to(self._scratch.directory)),
                )
            )
            self._failures = 0 if expected else self._failures + 1
            if self._failures >= _MOST_FAILURES:
                raise TortureError(
                    f"{_MOST_FAILURES} workers in a row have ended by themselves, the last with status {status}:"
                    f" {_said(worker)}"
                )


def _said(worker: Worker) -> str:
    return worker.log.read_text(errors="replace")[-_LOG_TAIL:]


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
