"""Draining ninety-nine quick jobs and a slow one, again and again: how long do the quick ones wait?

All are due when the drain begins, so that a quick job waits from then to the first line of its handler. It is measured
beside the same drain with claims of one job each, where nothing can wait behind a slow job of its own batch.
"""

from __future__ import annotations

import json
import time

from acw.benchmark import meter, rows
from acw.benchmark.errors import CountError
from acw.benchmark.figures import Figure, of_rounds, percentile
from acw.benchmark.job_types import MIXED
from acw.benchmark.scratch import Scratch
from acw.benchmark.workers import Workers
from jobs.wakeup import CHANNEL

QUICK = 99
REPEATS = 20
REPEATS_SHORT = 4
SLOW_SECONDS = 2.0
SLOW_SECONDS_SHORT = 0.3
PERCENTS = (50, 95)

_LOOK_EVERY = 0.05
_MARGIN = 60.0


def measure(scratch: Scratch, *, rounds: int, short: bool) -> list[Figure]:
    """The waiting time's percentiles in each round, with the product's batches and with batches of one."""
    one_by_one, batched = [], []
    for _ in range(rounds):
        one_by_one.append(_drain(scratch, short=short, largest_batch=1))
        batched.append(_drain(scratch, short=short, largest_batch=0))
    return [
        of_rounds(
            f"mixed jobs, wait of the quick ones, p{percent}",
            [percentile(waits, percent) for waits in batched],
            unit="s",
            ceilings=[percentile(waits, percent) for waits in one_by_one],
            against="batches of one",
            goal="≤ 1" if percent == max(PERCENTS) else "",
        )
        for percent in PERCENTS
    ]


def _drain(scratch: Scratch, *, short: bool, largest_batch: int) -> list[float]:
    """Seconds that each quick job waited; raises CountError unless every job was handled and recorded."""
    repeats = REPEATS_SHORT if short else REPEATS
    slow = SLOW_SECONDS_SHORT if short else SLOW_SECONDS
    payloads = tuple(json.dumps({"seconds": each}) for each in [*[0] * QUICK, slow])
    scratch.clear()
    with (
        scratch.connect() as connection,
        Workers(scratch, BENCHMARK_LARGEST_BATCH=str(largest_batch)) as workers,
    ):
        workers.pause()
        filled = rows.fill(
            connection, repeats * len(payloads), type_name=MIXED, payloads=payloads
        )
        scratch.settle()
        connection.execute("SELECT pg_notify(%s, '')", [CHANNEL])
        began = time.monotonic()
        workers.resume()
        while rows.left(connection, filled):
            workers.check()
            if time.monotonic() > began + repeats * slow + _MARGIN:
                raise CountError("the mixed jobs do not come to an end: no figure")
            time.sleep(_LOOK_EVERY)
        handled = meter.counted(scratch.meters)
        rows.check(connection, filled, handled=handled, kept=True)
    return [moment - began for moment in meter.noted(scratch.meters)]
