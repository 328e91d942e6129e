"""Draining no-op jobs with `runjobs`, beside the plain loop over the same table.

Both are brought up first, and stand still while the jobs are laid out and the server settles. The clock runs from the
moment at which they may go to that at which the table says that none is left.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from acw.benchmark import children, meter, rows
from acw.benchmark.children import Child
from acw.benchmark.errors import CountError
from acw.benchmark.figures import Figure, of_rounds
from acw.benchmark.job_types import NOOP, NOOP_DELETED
from acw.benchmark.scratch import Scratch
from acw.benchmark.workers import Workers
from jobs.claims import LARGEST_BATCH
from jobs.wakeup import CHANNEL

JOBS = 50_000
JOBS_SHORT = 8_000
THREADS = 2
BATCH = 100
"""Jobs that the plain loop claims at once where it is the ceiling."""


_LOOK_EVERY = 0.004
_SLOWEST = 50
"""Jobs a second below which a drain is given up."""

_START_WITHIN = 60.0


@dataclass(frozen=True, kw_only=True)
class Drained:
    """One drain: jobs a second, and what the workers used for it."""

    rate: float
    peak_rss: list[float]
    cpu_seconds: float


def measure_kept(scratch: Scratch, *, rounds: int, short: bool) -> list[Figure]:
    """Finished rows stay, as by default."""
    return _measure(scratch, rounds=rounds, short=short, kept=True)


def measure_deleted(scratch: Scratch, *, rounds: int, short: bool) -> list[Figure]:
    """Finished rows are deleted on completion."""
    return _measure(scratch, rounds=rounds, short=short, kept=False)


def _measure(scratch: Scratch, *, rounds: int, short: bool, kept: bool) -> list[Figure]:
    jobs = JOBS_SHORT if short else JOBS
    warm_up(scratch, jobs)
    return [
        figure
        for processes in (1, 2)
        for figure in _beside_loops(
            scratch, jobs=jobs, processes=processes, kept=kept, rounds=rounds
        )
    ]


def warm_up(scratch: Scratch, jobs: int) -> None:
    """A drain that nothing is compared with: the first one of a run is slower than all others."""
    scratch.clear()
    plain_loop(scratch, jobs=jobs)


def _beside_loops(
    scratch: Scratch, *, jobs: int, processes: int, kept: bool, rounds: int
) -> list[Figure]:
    """The drain beside the plain loop, also beside one that takes as much at once as the worker may."""
    loops: dict[int, list[float]] = {BATCH: [], LARGEST_BATCH: []}
    rates = []
    for _ in range(rounds):
        for batch, taken in loops.items():
            scratch.clear()
            taken.append(
                plain_loop(
                    scratch, jobs=jobs, processes=processes, kept=kept, batch=batch
                )
            )
        scratch.clear()
        rates.append(drain(scratch, jobs=jobs, processes=processes, kept=kept).rate)
    what = "kept" if kept else "deleted"
    name = f"drain, {what}, {processes} process{'es' if processes > 1 else ''}"
    return [
        of_rounds(
            name,
            rates,
            unit="jobs/s",
            ceilings=taken,
            against=f"loop, {processes * THREADS} connections, batches of {batch}",
            goal="≥ 0.85" if (processes, batch) == (1, BATCH) else "",
        )
        for batch, taken in loops.items()
    ]


def drain(
    scratch: Scratch,
    *,
    jobs: int,
    processes: int = 1,
    threads: int = THREADS,
    kept: bool = True,
) -> Drained:
    """Drain so many no-op jobs with `runjobs`, beside whatever lies in the table.

    Raises CountError where what was handled or recorded is not what was enqueued or where it does not
    come to an end.
    """
    type_name = NOOP if kept else NOOP_DELETED
    with (
        scratch.connect() as connection,
        Workers(scratch, processes=processes, threads=threads) as workers,
    ):
        before = meter.counted(scratch.meters)
        workers.pause()
        filled = rows.fill(connection, jobs, type_name=type_name)
        scratch.settle()
        cpu_before = workers.cpu_seconds()
        connection.execute("SELECT pg_notify(%s, '')", [CHANNEL])
        began = time.monotonic()
        workers.resume()
        deadline = began + _START_WITHIN + jobs / _SLOWEST
        while meter.counted(scratch.meters) - before < jobs:
            _look_after(workers, deadline)
        while not rows.tail_is_done(connection, filled):
            _look_after(workers, deadline)
        ended = time.monotonic()
        while rows.left(connection, filled):
            _look_after(workers, deadline)
            ended = time.monotonic()
        used = Drained(
            rate=jobs / (ended - began),
            peak_rss=workers.peak_rss(),
            cpu_seconds=workers.cpu_seconds() - cpu_before,
        )
        handled = meter.counted(scratch.meters) - before
        rows.check(connection, filled, handled=handled, kept=kept)
    return used


def plain_loop(
    scratch: Scratch,
    *,
    jobs: int,
    processes: int = 1,
    threads: int = THREADS,
    kept: bool = True,
    batch: int = BATCH,
) -> float:
    """Jobs a second of the plain loop; raises CountError as :func:`drain` does."""
    arguments = [threads, batch, "keep" if kept else "delete"]
    loops = [
        Child("acw.benchmark.ceiling", arguments, scratch.env())
        for _ in range(processes)
    ]
    with scratch.connect() as connection, children.together(loops):
        filled = rows.fill(connection, jobs)
        scratch.settle()
        results = children.run(loops)
        handled = sum(result["jobs"] for result in results)
        rows.check(connection, filled, handled=handled, kept=kept)
    began = min(result["began"] for result in results)
    ended = max(result["ended"] for result in results)
    return float(jobs / (ended - began))


def _look_after(workers: Workers, deadline: float) -> None:
    workers.check()
    if time.monotonic() > deadline:
        raise CountError("the drain does not come to an end: jobs are lost or stuck")
    time.sleep(_LOOK_EVERY)
