"""How long jobs take here, so that a batch is worth a fixed time and not a fixed number of jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from jobs.claims import BATCH_SECONDS, LARGEST_BATCH, Level
from jobs.leases import LeasedJob
from jobs.models import Priority

_WEIGHT = 0.3
"""Of the newest duration in the moving average."""

_SHORTEST = 1e-6

_FIRST_LIMIT = 16
"""Jobs asked of a queue and priority that gave none the last time."""


class Estimates:
    """Moving averages of durations, by type and by queue. Seconds.

    What was never seen counts as a whole batch: it is taken alone until its duration is known. Shared by the threads of
    a pool without a lock: an update that is lost in a race shifts an average a little.
    """

    def __init__(self) -> None:
        self._types: dict[str, float] = {}
        self._queues: dict[str, float] = {}
        self._given: Mapping[Level, int] = {}

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

    def claimed(self, jobs: Iterable[LeasedJob]) -> Mapping[Level, int]:
        """Note how many jobs the newest claim has found at which queue and priority, and return it."""
        self._given = given = Counter([(job.queue, job.priority) for job in jobs])
        return given

    def limit(self, queue: str, priority: int = Priority.NORMAL) -> int:
        """How many jobs of this queue and priority to ask for: from 1 to ``LARGEST_BATCH``.

        Not more than are worth a batch, nor twice what they gave the last time: a claim locks what it asks for
        everywhere before it keeps one batch, and what it locks is hidden from other workers meanwhile.
        """
        average = self._queues.get(queue, BATCH_SECONDS)
        worth = max(1, min(LARGEST_BATCH, int(BATCH_SECONDS / average)))
        return min(worth, max(_FIRST_LIMIT, 2 * self._given.get((queue, priority), 0)))


def _average(before: float | None, newest: float) -> float:
    newest = max(newest, _SHORTEST)
    return newest if before is None else before + _WEIGHT * (newest - before)
