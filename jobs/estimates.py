"""How long jobs take here, so that a batch is worth a fixed time and not a fixed number of jobs."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.claims import BATCH_SECONDS, LARGEST_BATCH

_WEIGHT = 0.3
"""Of the newest duration in the moving average."""

_SHORTEST = 1e-6


class Estimates:
    """Moving averages of durations, by type and by queue. Seconds.

    What was never seen counts as a whole batch: it is taken alone until its duration is known. Shared by the threads of
    a pool without a lock: an update that is lost in a race shifts an average a little.
    """

    def __init__(self) -> None:
        self._types: dict[str, float] = {}
        self._queues: dict[str, float] = {}

    def record(self, type_name: str, queue: str, seconds: float) -> None:
        """Note how long one execution took."""
        self._types[type_name] = _average(self._types.get(type_name), seconds)
        self._queues[queue] = _average(self._queues.get(queue), seconds)

    def cost(self, type_name: str) -> float:
        """What one job of this type takes."""
        return self._types.get(type_name, BATCH_SECONDS)

    def costs(self, type_names: Iterable[str]) -> dict[str, float]:
        """The cost of each of these types."""
        return {name: self.cost(name) for name in type_names}

    def limit(self, queue: str) -> int:
        """How many jobs of this queue make a batch: from 1 to ``LARGEST_BATCH``."""
        average = self._queues.get(queue, BATCH_SECONDS)
        return max(1, min(LARGEST_BATCH, int(BATCH_SECONDS / average)))


def _average(before: float | None, newest: float) -> float:
    newest = max(newest, _SHORTEST)
    return newest if before is None else before + _WEIGHT * (newest - before)
