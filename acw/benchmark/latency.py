"""How soon an idle worker begins a job: from just before `enqueue` to the first line of the handler.

The floor is a plain program that listens, is told of each row in the transaction which inserts it, and claims it
with one statement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from acw.benchmark import children, meter
from acw.benchmark.children import Child
from acw.benchmark.errors import CountError
from acw.benchmark.figures import Figure, of_rounds, percentile
from acw.benchmark.scratch import Scratch
from acw.benchmark.workers import Workers

JOBS = 300
JOBS_SHORT = 60
APART = 0.02
"""Seconds between two jobs."""

PERCENTS = (50, 95, 99)

_ARRIVE_WITHIN = 20.0
_LOOK_EVERY = 0.05
_MS = 1_000


def measure(scratch: Scratch, *, rounds: int, short: bool) -> list[Figure]:
    """The percentiles of each round, and of the floor in the same round."""
    jobs = JOBS_SHORT if short else JOBS
    floors, times = [], []
    for _ in range(rounds):
        floors.append(_plain(scratch, jobs))
        times.append(_product(scratch, jobs))
    return [
        of_rounds(
            f"latency on an idle worker, p{percent}",
            _percentiles(times, percent),
            unit="ms",
            ceilings=_percentiles(floors, percent),
            against="plain LISTEN and claim",
        )
        for percent in PERCENTS
    ]


def _percentiles(rounds: Sequence[Sequence[float]], percent: float) -> list[float]:
    return [percentile(times, percent) * _MS for times in rounds]


def _product(scratch: Scratch, jobs: int) -> list[float]:
    scratch.clear()
    with Workers(scratch) as workers:
        sender = Child("acw.benchmark.senders", ["enqueue", jobs, APART], scratch.env())
        with sender:
            children.run([sender])
            return _arrived(scratch, jobs, workers.check)


def _plain(scratch: Scratch, jobs: int) -> list[float]:
    scratch.clear()
    listener = Child("acw.benchmark.senders", ["listen", jobs, APART], scratch.env())
    sender = Child("acw.benchmark.senders", ["insert", jobs, APART], scratch.env())
    with children.together([listener, sender]):
        heard, _ = children.run([listener, sender])
    times: list[float] = heard["times"]
    return times


def _arrived(scratch: Scratch, jobs: int, check: Callable[[], None]) -> list[float]:
    deadline = time.monotonic() + _ARRIVE_WITHIN
    while len(times := meter.noted(scratch.meters)) < jobs:
        check()
        if time.monotonic() > deadline:
            break
        time.sleep(_LOOK_EVERY)
    if len(times) != jobs:
        raise CountError(
            f"{jobs:,} jobs were enqueued and {len(times):,} begun: no figure"
        )
    return times
