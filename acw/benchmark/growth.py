"""Draining while very many other rows lie in the table, beside the drain of a table without them.

The states take turns within each round, each in a table that was emptied and filled anew, so that neither the
machine's drift nor what an earlier drain left is in the ratio.
"""

from __future__ import annotations

from acw.benchmark import rows as jobs_rows
from acw.benchmark.drains import JOBS_SHORT, drain, warm_up
from acw.benchmark.figures import Figure, of_rounds
from acw.benchmark.scratch import Scratch

JOBS = 30_000

_NONE = "empty"


def measure(scratch: Scratch, *, rounds: int, short: bool, rows: int) -> list[Figure]:
    """Drains beside ``rows`` completed, dead and future jobs."""
    jobs = JOBS_SHORT if short else JOBS
    rates: dict[str, list[float]] = {state: [] for state in (_NONE, *jobs_rows.STATES)}
    warm_up(scratch, jobs)
    for _ in range(rounds):
        for state, taken in rates.items():
            scratch.clear()
            if state != _NONE:
                with scratch.connect() as connection:
                    jobs_rows.seed(connection, state, rows)
                scratch.settle()
            taken.append(drain(scratch, jobs=jobs).rate)
    scratch.clear()
    return [
        of_rounds(
            f"drain beside {rows:,} {state} rows",
            rates[state],
            unit="jobs/s",
            ceilings=rates[_NONE],
            against="drain of the empty table",
            goal="≥ 0.95",
        )
        for state in jobs_rows.STATES
    ]
