"""The periodic runners: when each is due, one tick, and what is remembered of it.

The schedule lies in the database. A tick is claimed with one conditional UPDATE, so that any number of
processes run it once; ticks missed while everything was down run once, not many times.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import Any

from django.db import close_old_connections, connections

from jobs import outcomes, registry
from jobs.connection import UNAVAILABLE, Executes, Outage, QueueConnection
from jobs.events import LogEvent
from jobs.heartbeat import alive_within
from jobs.models import RunnerState
from jobs.part import Part
from jobs.registry import Runner, Summary

log = logging.getLogger(__name__)

SHORTEST_WAIT = 0.1
"""Seconds: a tick that is due and still under way somewhere must not make the loop spin."""

LONGEST_WAIT = 5.0
"""Seconds until the schedule is looked at again, however far away the next tick is."""

# A shorter interval brings the next tick forward; a longer one takes effect after it.
_REGISTER = """
INSERT INTO job_runners (name, interval) VALUES (%(name)s, %(interval)s)
ON CONFLICT (name) DO UPDATE
SET interval = excluded.interval,
    next_run_at = least(job_runners.next_run_at, statement_timestamp() + excluded.interval)
WHERE job_runners.interval <> excluded.interval
"""

# The next tick stays on the grid of the interval, whenever this one came to run. One that another living process
# is still at is waited for; this process knows its own.
_CLAIM_TICK = """
UPDATE job_runners
SET next_run_at = next_run_at + interval * (1 + floor(
        extract(epoch FROM statement_timestamp() - next_run_at) / extract(epoch FROM interval)
    )),
    last_started_at = statement_timestamp(), last_worker = %(worker)s, last_outcome = 'running'
WHERE name = %(name)s AND next_run_at <= statement_timestamp()
    AND NOT (
        last_outcome = 'running' AND last_worker <> %(worker)s AND EXISTS (
            SELECT FROM job_workers
            WHERE job_workers.name = last_worker AND beat_at > statement_timestamp() - %(alive)s
        )
    )
RETURNING job_runners.name
"""

_BEGIN_TICK = """
UPDATE job_runners
SET last_started_at = statement_timestamp(), last_worker = %(worker)s, last_outcome = 'running'
WHERE name = %(name)s
"""

_END_TICK = """
UPDATE job_runners
SET last_finished_at = statement_timestamp(), last_outcome = %(outcome)s, last_summary = %(summary)s::jsonb,
    last_error = %(error)s
WHERE name = %(name)s AND last_worker = %(worker)s
"""

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
        self._connection = QueueConnection()
        self._ticks: dict[str, threading.Thread] = {}

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
                self.stopping.wait(wait)

    def start_due_ticks(self) -> float:
        """Start what is due; return the seconds until it is worth looking again."""
        enabled = [runner for runner in registry.runners().values() if runner.enabled]
        for runner in enabled:
            if self.stopping.is_set():
                break
            running = self._ticks.get(runner.name)
            if running is not None and running.is_alive():
                continue
            if claim_tick(self._connection, runner, worker=self._worker):
                thread = threading.Thread(
                    target=self._tick,
                    args=[runner],
                    name=f"acw-runner-{runner.name}",
                    daemon=True,
                )
                self._ticks[runner.name] = thread
                thread.start()
        rows = self._connection.execute(
            _SECONDS_LEFT, {"names": [r.name for r in enabled]}
        )
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
        for thread in list(self._ticks.values()):
            thread.join(max(0.0, deadline - time.monotonic()))
        return [name for name, thread in list(self._ticks.items()) if thread.is_alive()]

    def _tick(self, runner: Runner) -> None:
        try:
            run_tick(runner, worker=self._worker, stop=self.stopping)
        except (
            Exception
        ):  # logged by run_tick; an error of one runner must not touch another
            return
        finally:
            connections.close_all()


def register(connection: Executes) -> None:
    """Give each registered runner its row; a new one is due at once."""
    for runner in registry.runners().values():
        connection.execute(
            _REGISTER, {"name": runner.name, "interval": runner.interval}
        )


def claim_tick(connection: Executes, runner: Runner, *, worker: str) -> bool:
    """Take the tick that is due, if there is one and nobody else has it."""
    parameters = {"name": runner.name, "worker": worker, "alive": alive_within()}
    return bool(connection.execute(_CLAIM_TICK, parameters))


def run_now(runner: Runner, *, worker: str) -> Summary:
    """One tick now, in this thread; the schedule goes on as it was. Raises what the runner raises."""
    with QueueConnection() as connection:
        register(connection)
        connection.execute(_BEGIN_TICK, {"name": runner.name, "worker": worker})
    return run_tick(runner, worker=worker, stop=threading.Event())


def run_tick(runner: Runner, *, worker: str, stop: threading.Event) -> Summary:
    """Run a tick that was begun, and record how it went. Raises what the runner raises."""
    started = time.monotonic()
    close_old_connections()
    try:
        summary = dict(runner.tick(stop))
        json.dumps(summary)
    # Also SystemExit: a tick runs in a thread of its own, where nothing but the runner raises it.
    except BaseException as error:
        description = outcomes.describe(error)
        log.exception(
            LogEvent.RUNNER_FAILED,
            extra={"runner": runner.name, "error": description},
        )
        _end(runner, worker, RunnerState.Outcome.FAILED, error=description)
        raise
    seconds = round(time.monotonic() - started, 3)
    log.info(
        LogEvent.RUNNER_COMPLETED,
        extra={"runner": runner.name, "seconds": seconds, "summary": summary},
    )
    _end(runner, worker, RunnerState.Outcome.COMPLETED, summary=summary)
    return summary


def _end(
    runner: Runner,
    worker: str,
    outcome: RunnerState.Outcome,
    *,
    summary: Summary | None = None,
    error: str = "",
) -> None:
    values: dict[str, Any] = {
        "name": runner.name,
        "worker": worker,
        "outcome": outcome.value,
        "summary": json.dumps(dict(summary or {})),
        "error": error,
    }
    with QueueConnection() as connection:
        try:
            connection.execute(_END_TICK, values)
        except UNAVAILABLE:
            log.exception(
                LogEvent.RUNNER_FAILED,
                extra={"runner": runner.name, "error": "not recorded"},
            )
