"""`runjobs` processes that work in a scratch schema while something is measured."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from acw.benchmark.errors import BenchmarkError
from acw.benchmark.scratch import Scratch
from acw.scratch.schema import MANAGE
from jobs import registry
from jobs.events import LogEvent

START_WITHIN = 60.0
STOP_WITHIN = 20.0
"""Seconds that a worker may take to be ready, and to end after SIGTERM."""

_LOOK_EVERY = 0.02
_LOG_TAIL = 3_000
_KIB = 1024.0
_TICKED = "SELECT name FROM job_runners WHERE last_outcome IN ('completed', 'failed')"


class Workers:
    """One or more workers with all their parts, from the block's start, at which they are ready, to its end.

    Ready is: they hear notifications, and every periodic runner has had its first tick.

    ``settings`` are environment variables on top of :meth:`Scratch.env`. They end by SIGTERM, what does not end
    in time by SIGKILL, and with this process, however that ends. Raises BenchmarkError with the end
    of its log for a worker that does not come up.
    """

    def __init__(
        self,
        scratch: Scratch,
        *,
        processes: int = 1,
        threads: int = 2,
        queues: str | None = None,
        **settings: str,
    ) -> None:
        self._scratch = scratch
        self._env = scratch.env(BENCHMARK_TETHERED="1", **settings)
        self._command = [sys.executable, str(MANAGE), "runjobs", f"--workers={threads}"]
        if queues is not None:
            self._command.append(f"--queues={queues}")
        self._logs = [
            scratch.directory / f"worker-{time.monotonic_ns()}-{number}.log"
            for number in range(processes)
        ]
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workers:
        try:
            for log in self._logs:
                self._processes.append(self._start(log))
            self._await_ready()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def pause(self) -> None:
        """Stop them in their tracks, so that what they are to do can be laid out before them."""
        for process in self._processes:
            process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let them go on."""
        for process in self._processes:
            process.send_signal(signal.SIGCONT)

    def check(self) -> None:
        """Raise BenchmarkError where one has ended, with the end of its log."""
        for process, log in zip(self._processes, self._logs, strict=True):
            if process.poll() is not None:
                raise BenchmarkError(
                    f"a worker has ended with status {process.returncode}:"
                    f" {_complaints(log)}"
                )

    def logged(self, event: str) -> int:
        """How often they have logged the event."""
        return sum(_count(log, event) for log in self._logs)

    def rss(self) -> list[float]:
        """The memory that each process has resident now, in MiB."""
        return [_memory(pid, "VmRSS") for pid in self.pids]

    def peak_rss(self) -> list[float]:
        """The most memory that each process has had resident, in MiB."""
        return [_memory(pid, "VmHWM") for pid in self.pids]

    def cpu_seconds(self) -> float:
        """The processor time that all of them have used."""
        return sum(_cpu_seconds(pid) for pid in self.pids)

    def _start(self, log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as output:
            return subprocess.Popen(  # noqa: S603 - our own command
                self._command,
                env=self._env,
                # Never written to: its end tells the worker that this process has ended.
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_WITHIN
        while not self._ready():
            self.check()
            if time.monotonic() > deadline:
                tails = "\n".join(map(_complaints, self._logs))
                raise BenchmarkError(
                    f"the workers are not ready after {START_WITHIN:.0f} s: {tails}"
                )
            time.sleep(_LOOK_EVERY)

    def _ready(self) -> bool:
        if self.logged(LogEvent.LISTENER_CONNECTED) < len(self._processes):
            return False
        with self._scratch.connect() as connection:
            ticked = {name for (name,) in connection.execute(_TICKED).fetchall()}
        return ticked >= {
            name
            for name in registry.runners()
            if self._env.get(f"JOBS_{name.upper()}_ENABLED", "true") == "true"
        }

    def _end(self) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.terminate()
                process.send_signal(signal.SIGCONT)
        deadline = time.monotonic() + STOP_WITHIN
        for process in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()


def _count(log: Path, event: str) -> int:
    return sum(
        record["event"] == event for record in map(_record, _lines(log)) if record
    )


def _complaints(log: Path) -> str:
    """The end of what the log holds beside reports that all is well."""
    kept = [
        line
        for line in _lines(log)
        if (_record(line) or {}).get("level") not in ("info", "debug")
    ]
    return "\n".join(kept)[-_LOG_TAIL:] or "it has logged no reason"


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()


def _record(line: str) -> dict[str, Any] | None:
    """The log record; None for a line that is being written, or was said before logging was set up."""
    if not (line.startswith("{") and line.endswith("}")):
        return None
    record: dict[str, Any] = json.loads(line)
    return record


def _memory(pid: int, field: str) -> float:
    for line in _proc(pid, "status").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / _KIB
    raise BenchmarkError(f"the process {pid} shows no {field}: it has ended")


def _cpu_seconds(pid: int) -> float:
    # The name of the command, in brackets, may hold anything.
    fields = _proc(pid, "stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _proc(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError as error:
        raise BenchmarkError(
            f"/proc/{pid}/{name} cannot be read, where Linux tells what a process uses: {error.strerror}"
        ) from None
