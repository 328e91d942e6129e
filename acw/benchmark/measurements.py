"""What can be measured, by the names that ``--only`` takes, in the order in which it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType

from acw.benchmark import (
    deliveries,
    drains,
    enqueues,
    fetches,
    growth,
    latency,
    memory,
    mixed,
    vacuum,
)
from acw.benchmark.figures import Figure
from acw.benchmark.scratch import Scratch

ROWS = 1_000_000
ROWS_SHORT = 20_000
ROUNDS = 3


@dataclass(frozen=True, kw_only=True)
class Extent:
    """How much is measured: ``rows`` are those of the large tables."""

    rounds: int
    rows: int
    short: bool


Measure = Callable[[Scratch, Extent], list[Figure]]


def _of(
    module: ModuleType, function: str = "measure", *, rows: bool = False
) -> Measure:
    """The function of the module, told what it needs to know of the extent."""

    def measure(scratch: Scratch, extent: Extent) -> list[Figure]:
        told: dict[str, object] = {"rounds": extent.rounds, "short": extent.short}
        if rows:
            told["rows"] = extent.rows
        figures: list[Figure] = getattr(module, function)(scratch, **told)
        return figures

    return measure


MEASUREMENTS: Mapping[str, Measure] = {
    "enqueue": _of(enqueues, "measure_single"),
    "bulk": _of(enqueues, "measure_bulk"),
    "clients": _of(enqueues, "measure_clients"),
    "drain": _of(drains, "measure_kept"),
    "deleted": _of(drains, "measure_deleted"),
    "latency": _of(latency),
    "growth": _of(growth, rows=True),
    "mixed": _of(mixed),
    "vacuum": _of(vacuum),
    "deliveries": _of(deliveries),
    "fetches": _of(fetches),
    "memory": _of(memory, rows=True),
}
