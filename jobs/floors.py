"""From where in a queue a claim looks for due jobs, so that it need not step over what was claimed before.

A row that was claimed stays in the index as a dead entry until vacuum removes it. Beside a
transaction that holds vacuum back these pile up at the front, where each claim begins: a claim then
takes ever longer. So a claim begins shortly before the last job that was claimed at its queue and priority. What turns up
behind that (a transaction that was slow to commit, a lease that was given back) is found by full claims, which look from the very
beginning and take a bounded share of the time.

So it is where a full claim took long and found nothing: a backlog of a type that this worker has no handler for, say, which it
would otherwise step over each time, while other jobs wait.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Container, Iterable, Mapping

from jobs.claims import Level
from jobs.leases import LeasedJob

MARGIN = dt.timedelta(milliseconds=500)
"""So far before the last claimed job a claim begins: most transactions commit within it."""

FULL_SHARE = 25
"""A full claim is due when this many times its last duration has passed."""

LONGEST_WITHOUT = 1.0
"""Seconds between two full claims, at most, where they are quick."""

SLOW = 0.04
"""Seconds from which on a full claim is too dear for that, and what it found nothing in is passed over until the next."""

LONGEST_WHEN_SLOW = 30.0
"""Seconds between two full claims that are."""


class Floors:
    """The ``run_at`` from which on each queue and priority is looked at. Shared by the threads of a pool.

    Without a lock: what is lost in a race is made good by the next full claim. The times are the
    database's; only the spacing of the full claims is this host's.
    """

    def __init__(self) -> None:
        self._floors: dict[Level, dt.datetime] = {}
        self._barren: dict[Level, dt.datetime] = {}
        self._full_due = 0.0

    def next(self) -> Mapping[Level, dt.datetime]:
        """The floors of the next claim; none where a full one is due."""
        if time.monotonic() >= self._full_due:
            return {}
        barren = self._barren
        return {**self._floors, **barren} if barren else self._floors

    def full_in(self) -> float:
        """Seconds until a full claim is due, not below zero."""
        return max(0.0, self._full_due - time.monotonic())

    def claimed(self, jobs: Iterable[LeasedJob]) -> None:
        """Take in what a claim has returned, in its order."""
        latest = {(job.queue, job.priority): job.run_at - MARGIN for job in jobs}
        if latest:
            self._floors = {**self._floors, **latest}
            if self._barren:
                self._barren = {
                    level: floor
                    for level, floor in self._barren.items()
                    if level not in latest
                }

    def full(self, seconds: float, queues: Container[str]) -> None:
        """Note that a full claim took so long, in these queues; others are forgotten."""
        longest = LONGEST_WITHOUT if seconds < SLOW else LONGEST_WHEN_SLOW
        self._full_due = time.monotonic() + min(longest, FULL_SHARE * seconds)
        self._floors = {k: floor for k, floor in self._floors.items() if k[0] in queues}
        self._barren = {}

    def pass_over(self, levels: Iterable[Level], before: dt.datetime) -> None:
        """Note that a full claim which was slow found nothing there; it began after ``before``."""
        self._barren = dict.fromkeys(levels, before - MARGIN)
