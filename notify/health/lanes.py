"""The threads of this process, shared between endpoints so that no slow one holds up another.

An endpoint whose last exchange was quick may have all threads but one. All others (slow ones, and those of which
nothing is known) have half of the threads between them, and one each. One of which nothing is known may go beyond that
half, or it would never be known while another hangs. Whoever finds no room waits in the queue, where another process
may take it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from jobs import concurrency

QUICK = 1.0
"""Seconds: an exchange that takes longer is slow, also while it is under way."""

MOMENT = 0.2
"""Seconds that a delivery waits here for room: one that is quick gives it back in no time, and to turn the next away costs more."""

MOST_REMEMBERED = 10_000
"""Endpoints of which is remembered how quick they are."""


@dataclass(slots=True, eq=False)
class Lane:
    """One delivery's stay. ``admitted``: whether there is room for it.

    ``began`` is (monotonic) when it came in or, where it is not admitted, the oldest that is under way at its endpoint.
    """

    endpoint_id: int
    slow: bool
    admitted: bool = False
    scouts: bool = False
    """Whether it is there, beyond the half of the slow, to find out how quick its endpoint is."""
    began: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began

    @property
    def holds_up(self) -> bool:
        """Whether it takes a thread for long, or may."""
        return self.slow or self.age > QUICK


class Lanes:
    """What is under way in one process, by endpoint, and how long the last exchange of each took."""

    def __init__(
        self,
        *,
        threads: Callable[[], int] = concurrency.threads,
        last_took: Callable[[int], float | None],
    ) -> None:
        self._threads = threads
        self._last_took = last_took
        self._room = threading.Condition()
        self._under_way: list[Lane] = []
        self._took: dict[int, float | None] = {}
        self._turned_away: set[int] = set()

    @contextmanager
    def lane(self, endpoint_id: int) -> Iterator[Lane]:
        """Room for one delivery, for as long as this lasts, where it is ``admitted``."""
        if endpoint_id not in self._took:
            self.learn(endpoint_id, self._last_took(endpoint_id))
        with self._room:
            self._room.wait_for(lambda: not self._is_crowded(endpoint_id), MOMENT)
            lane = self._enter(endpoint_id)
        try:
            yield lane
        finally:
            if lane.admitted:
                with self._room:
                    self._under_way.remove(lane)
                    self._room.notify_all()

    def learn(self, endpoint_id: int, seconds: float | None) -> bool:
        """An exchange with it took so long; None: nobody knows. Return whether it was quick, and had others turned away."""
        if len(self._took) >= MOST_REMEMBERED:
            self._took = {}
        self._took[endpoint_id] = seconds
        if seconds is None or seconds > QUICK or endpoint_id not in self._turned_away:
            return False
        self._turned_away.discard(endpoint_id)
        return True

    def turned_away(self, endpoint_id: int) -> None:
        """A delivery to it was not let out: as soon as one ends that is quick, others may come."""
        self._turned_away.add(endpoint_id)

    def _is_crowded(self, endpoint_id: int) -> bool:
        """Whether its endpoint is quick, or not known, and one under way there will make room, or tell, in a moment."""
        of_it = [lane for lane in self._under_way if lane.endpoint_id == endpoint_id]
        took = self._took.get(endpoint_id)
        if (took is not None and took > QUICK) or any(
            each.age > QUICK for each in of_it
        ):
            return False
        threads = self._threads()
        return bool(threads) and len(of_it) >= (
            1 if took is None else _all_but_one(threads)
        )

    def _enter(self, endpoint_id: int) -> Lane:
        threads = self._threads()
        of_it = [lane for lane in self._under_way if lane.endpoint_id == endpoint_id]
        took = self._took.get(endpoint_id)
        lane = Lane(endpoint_id, slow=took is None or took > QUICK)
        if lane.slow or any(each.holds_up for each in of_it):
            lane.slow = True
            others = sum(each.holds_up for each in self._under_way)
            lane.admitted = not of_it and others < max(1, threads // 2)
            if took is None and not of_it and not lane.admitted:
                lane.scouts = lane.admitted = self._may_scout(others, threads)
        else:
            lane.admitted = len(of_it) < _all_but_one(threads)
        # Where no pool is known there is one caller, who is not to be turned away.
        lane.admitted = lane.admitted or not threads
        if lane.admitted:
            self._under_way.append(lane)
        else:
            lane.began = min((each.began for each in of_it), default=lane.began)
            self.turned_away(endpoint_id)
        return lane

    def _may_scout(self, others: int, threads: int) -> bool:
        """One at a time; one that takes long scouts no more, and the last thread but one is not for the next."""
        scouting = any(lane.scouts and lane.age <= QUICK for lane in self._under_way)
        return not scouting and others < max(2, threads - 1)


def _all_but_one(threads: int) -> int:
    return max(1, threads - 1)
