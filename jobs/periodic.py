"""The periodic runners in a worker process: looks for ticks that are due, and runs each in a thread of its own."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from django.db import connections

from jobs import registry, ticks
from jobs.bounded import BoundedConnection
from jobs.connection import UNAVAILABLE, Outage
from jobs.part import Part
from jobs.progress import ObservedStop, Progress
from jobs.ticks import Tick, claim_tick, give_up_ticks, register, run_tick

SHORTEST_WAIT = 0.1
"""Seconds: a tick that is due and still under way somewhere must not make the loop spin."""

LONGEST_WAIT = 5.0
"""Seconds until the schedule is looked at again, however far away the next tick is."""

_SECONDS_LEFT = """
SELECT extract(epoch FROM min(next_run_at) - statement_timestamp()) FROM job_runners WHERE name = ANY(%(names)s)
"""


_LAST_START_WITHIN = 2.0
"""Seconds."""


class Periodic(Part):
    """Looks for due ticks and runs each in a thread of its own, so that none waits for another."""

    def __init__(self, worker: str) -> None:
        super().__init__("acw-periodic")
        self._worker = worker
        self._outage = Outage(self.name)
        self._connection = BoundedConnection(self.progress)
        self._ticks: dict[str, _UnderWay] = {}

    def work(self) -> None:
        with self._connection:
            registered = False
            while not self.stopping.is_set():
                try:
                    if not registered:
                        register(self._connection)
                        registered = True
                    wait = self.start_due_ticks()
                except UNAVAILABLE as error:
                    wait = self._outage.failed(error)
                else:
                    self._outage.passed()
                self.wait(wait)

    def start_due_ticks(self) -> float:
        """Start what is due; return the seconds until it is worth looking again."""
        enabled = [runner for runner in registry.runners().values() if runner.enabled]
        for runner in enabled:
            if self.stopping.is_set():
                break
            under_way = self._ticks.get(runner.name)
            if under_way is not None and under_way.thread.is_alive():
                continue
            tick = claim_tick(self._connection, runner, worker=self._worker)
            if tick is not None:
                self._start(tick)
        names = [runner.name for runner in enabled]
        give_up_ticks(self._connection, names)
        rows = self._connection.execute(_SECONDS_LEFT, {"names": names})
        seconds = rows[0][0]
        return (
            LONGEST_WAIT
            if seconds is None
            else min(LONGEST_WAIT, max(SHORTEST_WAIT, float(seconds)))
        )

    def join_ticks(self, deadline: float) -> list[str]:
        """Wait for the ticks under way until ``deadline`` (monotonic); return those that have not ended."""
        if self.is_alive():
            # After a stop it may be about to start one more; where it waits for the database, nobody waits for it for long.
            left = deadline - time.monotonic()
            self.join(max(0.0, min(left, _LAST_START_WITHIN)))
        for under_way in list(self._ticks.values()):
            under_way.thread.join(max(0.0, deadline - time.monotonic()))
        return [
            name
            for name, under_way in list(self._ticks.items())
            if under_way.thread.is_alive()
        ]

    def ticks_under_way(self) -> list[Progress]:
        """The signs of the ticks that have not ended."""
        return [
            under_way.progress
            for under_way in list(self._ticks.values())
            if under_way.thread.is_alive()
        ]

    def _start(self, tick: Tick) -> None:
        name = f"acw-runner-{tick.runner.name}"
        progress = Progress(name, ticks.deadline(tick.runner).total_seconds())
        thread = threading.Thread(
            target=self._tick, args=[tick, progress], name=name, daemon=True
        )
        self._ticks[tick.runner.name] = _UnderWay(thread=thread, progress=progress)
        thread.start()

    def _tick(self, tick: Tick, progress: Progress) -> None:
        progress.moved()
        try:
            run_tick(tick, stop=ObservedStop(self.stopping, progress))
        # Logged by run_tick; an error of one runner must not touch another.
        except Exception:
            return
        finally:
            connections.close_all()


@dataclass(frozen=True, slots=True)
class _UnderWay:
    """A tick's thread, and its signs of progress."""

    thread: threading.Thread
    progress: Progress
