"""One tick of a periodic runner: how it is claimed, run, and remembered.

The schedule lies in the database. A tick is claimed with one conditional UPDATE, so that any number of
processes run it once; ticks missed while everything was down run once, not many times. One whose process died is
run again by another.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobs import calling, outcomes, registry
from jobs.bounded import BoundedConnection
from jobs.connection import UNAVAILABLE, Executes, Outage
from jobs.events import LogEvent
from jobs.handler_connections import HandlerConnections
from jobs.heartbeat import alive_within
from jobs.models import RunnerState
from jobs.registry import Runner, Summary

log = logging.getLogger(__name__)

MOST_TRIES = 3
"""So many processes may die of one tick; then it waits for its next time."""

SHORTEST_DEADLINE = dt.timedelta(minutes=5)
LONGEST_DEADLINE = dt.timedelta(hours=1)
"""Between these, a tick may leave no sign of progress for as long as its interval."""

# A shorter interval brings the next tick forward; a longer one takes effect after it.
_REGISTER = """
INSERT INTO job_runners (name, interval) VALUES (%(name)s, %(interval)s)
ON CONFLICT (name) DO UPDATE
SET interval = excluded.interval,
    next_run_at = least(job_runners.next_run_at, statement_timestamp() + excluded.interval)
WHERE job_runners.interval <> excluded.interval
"""

_ITS_WORKER_LIVES = """EXISTS (
    SELECT FROM job_workers WHERE job_workers.name = last_worker AND beat_at > statement_timestamp() - %(alive)s
)"""

# The next tick stays on the grid of the interval, whenever this one came to run. One that another living process
# is still at is waited for; this process knows its own, and asks for none that it is at. One that was cut off with its
# process, or whose claim had no answer, is taken again, which leaves the schedule as it is. Who claims must be known to be
# alive: the others would take the tick from it at once.
# A tick by hand (no tries) belongs to a process that is in no table, and is never taken again.
_CLAIM_TICK = f"""
UPDATE job_runners
SET next_run_at = CASE WHEN next_run_at > statement_timestamp() THEN next_run_at ELSE next_run_at + interval * (1 + floor(
        extract(epoch FROM statement_timestamp() - next_run_at) / extract(epoch FROM interval)
    )) END,
    tries = CASE WHEN next_run_at > statement_timestamp() THEN tries + 1 ELSE 1 END,
    last_started_at = statement_timestamp(), last_worker = %(worker)s, last_outcome = 'running'
WHERE name = %(name)s
    AND (
        next_run_at <= statement_timestamp()
        OR (last_outcome = 'running' AND tries BETWEEN 1 AND %(most)s - 1)
    )
    AND NOT (last_outcome = 'running' AND last_worker <> %(worker)s AND {_ITS_WORKER_LIVES})
    AND EXISTS (
        SELECT FROM job_workers
        WHERE job_workers.name = %(worker)s AND beat_at > statement_timestamp() - %(fresh)s
    )
RETURNING last_started_at, tries
"""  # noqa: S608 (nothing of a caller's)

_GIVE_UP = f"""
UPDATE job_runners
SET last_outcome = 'failed', last_finished_at = statement_timestamp(), last_summary = '{{}}', last_error = %(error)s
WHERE name = ANY(%(names)s) AND last_outcome = 'running' AND tries >= %(most)s AND NOT {_ITS_WORKER_LIVES}
RETURNING name, last_worker
"""  # noqa: S608 (nothing of a caller's)

_BEGIN_BY_HAND = """
UPDATE job_runners
SET last_started_at = statement_timestamp(), last_worker = %(worker)s, last_outcome = 'running', tries = 0
WHERE name = %(name)s
RETURNING last_started_at, tries
"""

_END_TICK = """
UPDATE job_runners
SET last_finished_at = statement_timestamp(), last_outcome = %(outcome)s, last_summary = %(summary)s::jsonb,
    last_error = %(error)s
WHERE name = %(name)s AND last_worker = %(worker)s AND last_started_at = %(started_at)s
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tick:
    """A tick that this process has taken. ``started_at``, the database's time, tells it from every other: a worker that was
    suspended past its successor's start records nothing over it."""

    runner: Runner
    worker: str
    started_at: dt.datetime
    tries: int


def deadline(runner: Runner) -> dt.timedelta:
    """How long a tick may go on without looking at its ``stop``."""
    return min(max(runner.interval, SHORTEST_DEADLINE), LONGEST_DEADLINE)


def register(connection: Executes) -> None:
    """Give each registered runner its row; a new one is due at once."""
    for runner in registry.runners().values():
        connection.execute(
            _REGISTER, {"name": runner.name, "interval": runner.interval}
        )


def claim_tick(connection: Executes, runner: Runner, *, worker: str) -> Tick | None:
    """Take the tick that is due, or was cut off, if there is one and nobody else has it.

    A worker whose row is missing in ``job_workers``, or old, gets none.
    """
    parameters = {
        "name": runner.name,
        "worker": worker,
        "alive": alive_within(),
        "fresh": alive_within() * 2 / 3,
        "most": MOST_TRIES,
    }
    for started_at, tries in connection.execute(_CLAIM_TICK, parameters):
        if tries > 1:
            log.warning(
                LogEvent.RUNNER_RETAKEN, extra={"runner": runner.name, "tries": tries}
            )
        return Tick(runner=runner, worker=worker, started_at=started_at, tries=tries)
    return None


def give_up_ticks(connection: Executes, names: Sequence[str]) -> None:
    """Record as failed what has ended as many processes as it may; it ticks again when it is due."""
    error = (
        f"cut off {MOST_TRIES} times: each worker that ran this tick ended before the tick did "
        "(killed, out of memory, or stopped for longer than JOBS_SHUTDOWN_GRACE); see the workers' logs"
    )
    parameters = {
        "names": list(names),
        "alive": alive_within(),
        "most": MOST_TRIES,
        "error": error,
    }
    for name, worker in connection.execute(_GIVE_UP, parameters):
        log.error(
            LogEvent.RUNNER_FAILED,
            extra={"runner": name, "worker": worker, "error": error},
        )


def run_now(runner: Runner, *, worker: str) -> Summary:
    """One tick now, in this thread; the schedule goes on as it was. Raises what the runner raises."""
    with BoundedConnection() as connection:
        register(connection)
        ((started_at, tries),) = connection.execute(
            _BEGIN_BY_HAND, {"name": runner.name, "worker": worker}
        )
    tick = Tick(runner=runner, worker=worker, started_at=started_at, tries=tries)
    return run_tick(tick, stop=threading.Event())


def run_tick(tick: Tick, *, stop: threading.Event) -> Summary:
    """Run a tick that was begun, and record how it went. Raises what the runner raises."""
    runner = tick.runner
    started = time.monotonic()
    connections = HandlerConnections()
    try:
        summary = dict(calling.without_children(runner.tick, stop))
        json.dumps(summary)
        if (misused := connections.tidy()) is not None:
            raise misused
    # Also SystemExit: a tick runs in a thread of its own, where nothing but the runner raises it.
    except BaseException as error:
        description = outcomes.describe(error)
        log.exception(
            LogEvent.RUNNER_FAILED,
            extra={"runner": runner.name, "error": description},
        )
        _end(tick, RunnerState.Outcome.FAILED, stop=stop, error=description)
        raise
    seconds = round(time.monotonic() - started, 3)
    log.info(
        LogEvent.RUNNER_COMPLETED,
        extra={"runner": runner.name, "seconds": seconds, "summary": summary},
    )
    _end(tick, RunnerState.Outcome.COMPLETED, stop=stop, summary=summary)
    return summary


def _end(
    tick: Tick,
    outcome: RunnerState.Outcome,
    *,
    stop: threading.Event,
    summary: Summary | None = None,
    error: str = "",
) -> None:
    """Record it, in an outage once that is over: a tick without an end would be run again."""
    values: dict[str, Any] = {
        "name": tick.runner.name,
        "worker": tick.worker,
        "started_at": tick.started_at,
        "outcome": outcome.value,
        "summary": json.dumps(dict(summary or {})),
        "error": error,
    }
    outage = Outage(f"runner {tick.runner.name}")
    with BoundedConnection() as connection:
        while True:
            try:
                connection.execute(_END_TICK, values)
            except UNAVAILABLE as failure:
                if not stop.wait(outage.failed(failure)):
                    continue
                log.exception(
                    LogEvent.RUNNER_FAILED,
                    extra={"runner": tick.runner.name, "error": "not recorded"},
                )
            else:
                outage.passed()
            return
