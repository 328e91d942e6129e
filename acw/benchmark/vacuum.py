"""What a claim costs a worker beside a transaction that holds vacuum back.

A snapshot is held open while jobs come in at a steady rate and one worker keeps up with them. Every job leaves dead
versions of its row, and dead entries where claims look for work, which nothing may remove while that snapshot lasts: a
claim that has to walk past them costs more by the second.

The time is taken in the worker, around each statement that claims; it may complete the batch before as well. A
statement of the benchmark's own, run beside it and rolled back, would leave out what a worker remembers from claim
to claim, would take its turn with the worker's and would leave dead rows of its own; the server's statistics
have means and no percentiles. Claims that found nothing count too: a thread waits for them before it looks again.

The figure is the end against the seconds before the snapshot was taken, in one flow of jobs: whatever the machine's
speed is, it is the same for both. That is why there are no rounds. The full run has the same flow
without a snapshot beside it, to tell what a table that grows does by itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import TracebackType

from acw.benchmark import meter, rows
from acw.benchmark.children import Child
from acw.benchmark.errors import BenchmarkError, CountError
from acw.benchmark.figures import Figure, percentile
from acw.benchmark.job_types import NOOP
from acw.benchmark.scratch import Scratch
from acw.benchmark.timed_worker import Timed
from acw.scratch.schema import MANAGE
from jobs.wakeup import CHANNEL

RATE = 500
"""Jobs a second."""

THREADS = 2
GOAL = "< 2"

_TICK = 0.01
_READY_WITHIN = 60.0
_CAUGHT_UP_WITHIN = 60.0
_LOOK_EVERY = 0.02
_PERCENT = 95
_MS = 1000.0

_WORKS = "SELECT EXISTS (SELECT FROM job_workers)"
_STANDING = """
SELECT count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status IN ('pending', 'running'))
FROM jobs WHERE type = %s
"""


@dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds: before anything counts, before the snapshot, beside it, and how many of the last ones count."""

    warm_up: float
    before: float
    beside: float
    last: float


FULL = Times(warm_up=3, before=10, beside=120, last=10)
SHORT = Times(warm_up=1, before=2, beside=5, last=2)


@dataclass(frozen=True, kw_only=True)
class Beside:
    """Milliseconds that a claim took at most in 95 of 100 cases, and whether the doctor named the holder."""

    before: float
    end: float
    named: bool | None = None


def measure(scratch: Scratch, *, rounds: int, short: bool) -> list[Figure]:
    """How much the claims slow down; ``rounds`` makes no difference, see above."""
    if short:
        return [_figure("beside a snapshot", _run(scratch, SHORT, held=True), SHORT)]
    alone = _run(scratch, FULL, held=False)
    beside = _run(scratch, FULL, held=True, ask_doctor=True)
    return [
        _figure("beside nothing", alone, FULL, goal=""),
        _figure("beside a snapshot", beside, FULL),
        Figure(
            name="snapshot's process, named by the doctor",
            value=float(bool(beside.named)),
            unit="of 1",
            ceiling=1.0,
            goal="1",
        ),
    ]


def _figure(what: str, measured: Beside, times: Times, *, goal: str = GOAL) -> Figure:
    return Figure(
        name=f"claim p95, {what} for {times.beside:g} s, {RATE} jobs/s",
        value=measured.end,
        unit="ms",
        ceiling=measured.before,
        against=f"the {times.before:g} s before",
        goal=goal,
    )


def _run(
    scratch: Scratch, times: Times, *, held: bool, ask_doctor: bool = False
) -> Beside:
    scratch.clear()
    scratch.settle()
    snapshot = held_snapshot(scratch) if held else nullcontext(0)
    # Its log goes nowhere, and a full pipe would stop it.
    env = scratch.env(ACW_LOG_LEVEL="critical")
    with (
        Child("acw.benchmark.timed_worker", [THREADS], env) as worker,
        Flow(scratch) as flow,
    ):
        worker.go()
        _await_worker(scratch)
        flow.go_on(times.warm_up)
        began = time.monotonic()
        flow.go_on(times.before)
        taken = time.monotonic()
        with snapshot as pid:
            flow.go_on(times.beside)
            ended = time.monotonic()
            named = is_named(scratch, pid) if ask_doctor else None
        flow.stop()
        check(scratch, flow.sent)
        worker.go()
        claims: list[Timed] = worker.result()["claims"]
    return Beside(
        before=p95(claims, since=began, until=taken),
        end=p95(claims, since=ended - times.last, until=ended),
        named=named,
    )


def p95(claims: list[Timed], *, since: float, until: float) -> float:
    """Milliseconds; raises BenchmarkError where nothing was claimed in that time."""
    seconds = [took for began, took in claims if since <= began < until]
    if not seconds:
        raise BenchmarkError(
            "the worker claimed nothing where its claims were to be timed: has its claim another name now?"
        )
    return percentile(seconds, _PERCENT) * _MS


@contextmanager
def held_snapshot(scratch: Scratch) -> Iterator[int]:
    """Hold a snapshot open, and give the id of the server's process that does."""
    with scratch.connect() as connection:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT FROM jobs LIMIT 1")
        yield connection.info.backend_pid
        connection.execute("ROLLBACK")


class Flow:
    """Jobs that come in steadily, each few with the notification that a producer would send."""

    def __init__(self, scratch: Scratch) -> None:
        self.sent = 0
        self._scratch = scratch
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: BaseException | None = None

    def __enter__(self) -> Flow:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def go_on(self, seconds: float) -> None:
        """Let so many seconds of it pass; raises what it failed with."""
        if self._thread.ident is None:  # it may have broken off
            self._thread.start()
        self._stopping.wait(seconds)
        self._raise()

    def stop(self) -> None:
        """Send no more; raises what it failed with."""
        self._stopping.set()
        self._thread.join()
        self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise BenchmarkError(
                f"the flow of jobs broke off: {self._error}"
            ) from self._error

    def _run(self) -> None:
        began = time.monotonic()
        try:
            with self._scratch.connect() as connection:
                while not self._stopping.wait(_TICK):
                    due = int(RATE * (time.monotonic() - began)) - self.sent
                    if due > 0:
                        rows.fill(connection, due)
                        connection.execute("SELECT pg_notify(%s, '')", [CHANNEL])
                        self.sent += due
        except BaseException as error:
            self._error = error
            self._stopping.set()


def is_named(scratch: Scratch, pid: int) -> bool:
    """Whether ``manage.py doctor`` names the server's process with this id."""
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, str(MANAGE), "doctor", "--json"],
        env=scratch.env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        process_group=0,
    )
    # Status 1 is that it found an error, such as that no worker serves some queue.
    if done.returncode not in (0, 1) or not done.stdout:
        raise BenchmarkError(f"the doctor failed: {done.stderr.strip()}")
    findings = json.loads(done.stdout)["findings"]
    return any(f"process {pid}," in finding["message"] for finding in findings)


def _await_worker(scratch: Scratch) -> None:
    with scratch.connect() as connection:
        deadline = time.monotonic() + _READY_WITHIN
        while not (row := connection.execute(_WORKS).fetchone()) or not row[0]:
            if time.monotonic() > deadline:
                raise BenchmarkError("the worker does not begin to work")
            time.sleep(_LOOK_EVERY)


def check(scratch: Scratch, sent: int) -> None:
    """Wait until the worker has caught up; raises CountError unless sent = handled = recorded."""
    with scratch.connect() as connection:
        deadline = time.monotonic() + _CAUGHT_UP_WITHIN
        while True:
            row = connection.execute(_STANDING, [NOOP]).fetchone()
            completed, live = row or (0, 0)
            if not live or time.monotonic() > deadline:
                break
            time.sleep(_LOOK_EVERY)
    handled = meter.counted(scratch.meters)
    if live or not sent == handled == completed:
        raise CountError(
            f"{sent:,} jobs were enqueued, {handled:,} handled and {completed:,} recorded as done, {live:,} are left:"
            " no figure"
        )
