"""Jobs that a claim has leased whose answer was lost on the way: this worker's by the table, and held by no thread of it.

A connection that is cut between a claim's commit and its answer leaves them. They were not begun, so they are given back at once
with their attempts, where they would otherwise wait for their lease to run out and lose one.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Collection, Iterable

from jobs import claims
from jobs.connection import Executes
from jobs.leases import LeasedJob, LeaseKey

SETTLE = 0.5
"""Seconds between two looks: a job may be on its way from one thread to another at the first."""

_MARGIN = 5.0


class Orphans:
    """Remembers that a claim has failed, and then looks twice for what it may have leased.

    ``asking`` gives the times (monotonic) at which the claims now under way have begun: what one of those may have leased is left
    alone.
    """

    def __init__(self, worker: str, asking: Callable[[], Iterable[float]]) -> None:
        self._worker = worker
        self._asking = asking
        self._failed_since: float | None = None
        self._seen: set[LeaseKey] = set()
        self._seen_at: float | None = None

    def suspect(self, began: float) -> None:
        """Note that a claim that began then (monotonic) has failed, whatever it did."""
        since = self._failed_since
        self._failed_since = began if since is None else min(since, began)
        self._seen_at = None

    def look(
        self,
        connection: Executes,
        held: Callable[[], Collection[LeasedJob]],
        *,
        last: bool = False,
    ) -> list[LeasedJob]:
        """What is to be given back; with ``last``, when nobody claims any more, without a second look.

        Raises what ``jobs.connection.UNAVAILABLE`` holds.
        """
        since, seen_at = self._failed_since, self._seen_at
        now = time.monotonic()
        if since is None or (seen_at and now < seen_at + SETTLE and not last):
            return []
        age = dt.timedelta(seconds=now - since + _MARGIN)
        found = claims.held_by(connection, self._worker, younger_than=age)
        kept = {job.key for job in held()}
        strays = [job for job in found if job.key not in kept]
        if last or not strays:
            self._forget(since)
            return strays
        if seen_at is None:
            self._seen, self._seen_at = {job.key for job in strays}, now
            return []
        if any(began <= seen_at for began in self._asking()):
            return []
        orphans = [job for job in strays if job.key in self._seen]
        self._forget(since)
        return orphans

    def _forget(self, since: float) -> None:
        """Unless another claim has failed meanwhile."""
        self._seen, self._seen_at = set(), None
        if self._failed_since == since:
            self._failed_since = None
