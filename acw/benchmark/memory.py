"""The memory of a worker process over very many jobs: how much at most, and whether it grows."""

from __future__ import annotations

import time

from acw.benchmark import meter
from acw.benchmark import rows as jobs_rows
from acw.benchmark.errors import CountError
from acw.benchmark.figures import Figure
from acw.benchmark.scratch import Scratch
from acw.benchmark.workers import Workers

_WARM = 0.1
"""The part of the jobs after which what a worker needs is taken as reached."""

_LOOK_EVERY = 0.1
_STUCK_AFTER = 60.0


def measure(scratch: Scratch, *, rounds: int, short: bool, rows: int) -> list[Figure]:
    """One worker drains ``rows`` no-op jobs; once, whatever the number of rounds."""
    scratch.clear()
    with scratch.connect() as connection:
        filled = jobs_rows.fill(connection, rows)
        scratch.settle()
        with Workers(scratch) as workers:
            _await(scratch, workers, int(rows * _WARM))
            (warm,) = workers.rss()
            _await(scratch, workers, rows)
            while jobs_rows.left(connection, filled):
                time.sleep(_LOOK_EVERY)
            (end,) = workers.rss()
            (peak,) = workers.peak_rss()
        handled = meter.counted(scratch.meters)
        jobs_rows.check(connection, filled, handled=handled, kept=True)
    scratch.clear()
    return [
        Figure(
            name=f"memory of a worker, {rows:,} jobs: most",
            value=peak,
            unit="MiB",
            ceiling=None,
        ),
        Figure(
            name=f"memory of a worker, {rows:,} jobs: at the end",
            value=end,
            unit="MiB",
            ceiling=warm,
            against=f"after {_WARM:.0%} of them",
            goal="1.00: flat",
        ),
    ]


def _await(scratch: Scratch, workers: Workers, count: int) -> None:
    """Wait until so many have been handled; raises CountError where none is for a while."""
    seen, since = -1, time.monotonic()
    while (handled := meter.counted(scratch.meters)) < count:
        workers.check()
        if handled != seen:
            seen, since = handled, time.monotonic()
        elif time.monotonic() - since > _STUCK_AFTER:
            raise CountError(f"no job was handled for {_STUCK_AFTER:.0f} s")
        time.sleep(_LOOK_EVERY)
