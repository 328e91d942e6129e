"""One run: workers, a producer and faults, until all jobs are in; then peace, until all are done; then the checks."""

from __future__ import annotations

import datetime as dt
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acw.scratch.schema import MANAGE
from acw.torture import figures, invariants, produced
from acw.torture.errors import TortureError
from acw.torture.faults import FAULTS, Deck, Fault, Field
from acw.torture.fleet import Fleet
from acw.torture.invariants import Violation
from acw.torture.scratch import Scratch
from jobs.connection import UNAVAILABLE

Say = Callable[[str], None]

NO_PROGRESS = 30.0
"""Seconds without any change of a job after which a run is not waited for any longer."""

_LOOK_EVERY = 0.05
_AGAIN_AFTER = 0.2
_PATIENCE = 30.0
_LOG_TAIL = 3_000
_LIVE = "SELECT count(*) FROM jobs WHERE status IN ('pending', 'running')"
_PROGRESS = "SELECT max(number) FROM torture_transitions"
_NOTE_FAULT = (
    "INSERT INTO torture_faults (number, at, fault, what) VALUES (%s, %s, %s, %s)"
)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is done. ``seconds`` is how long faults happen, one each ``fault_every`` seconds on average; ``lease`` is in seconds."""

    seed: int
    jobs: int = 20_000
    seconds: float = 180.0
    workers: int = 3
    threads: int = 3
    lease: float = 3.0
    fault_every: float = 2.0

    @property
    def settings(self) -> dict[str, str]:
        """Those of the workers: everything that takes minutes takes seconds."""
        return {
            "ACW_HOST": "torture",
            "JOBS_JOB_REAPER_LEASE_TIMEOUT": f"{self.lease * 1000:.0f}ms",
            "JOBS_JOB_REAPER_INTERVAL": "500ms",
            "JOBS_POLL_INTERVAL": "500ms",
            "JOBS_BACKOFF_BASE": "200ms",
            "JOBS_BACKOFF_MAX": "1s",
            "JOBS_SHUTDOWN_GRACE": "3s",
            "JOBS_JOB_PURGE_ENABLED": "false",
            "JOBS_WORKSPACE_FETCH_ENABLED": "false",
            "JOBS_WORKTREE_PRUNE_ENABLED": "false",
            "JOBS_ATTACHMENT_CLEANUP_ENABLED": "false",
        }


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a run has shown; ``figures`` by name, times in seconds."""

    figures: dict[str, float]
    violations: list[Violation]


def run(
    scratch: Scratch,
    plan: Plan,
    *,
    say: Say,
    faults: Sequence[Fault] = FAULTS,
    settings: Mapping[str, str] | None = None,
) -> Result:
    """Do it; ``settings`` are environment variables of the workers on top of the plan's.

    Raises TortureError where it cannot be brought to an end.
    """
    with Fleet(
        scratch,
        workers=plan.workers,
        threads=plan.threads,
        settings={**plan.settings, **(settings or {})},
    ) as fleet:
        say(
            f"{plan.workers} workers and {plan.jobs:,} jobs, faults with the seed {plan.seed}"
        )
        noted = _faults(scratch, fleet, plan, faults, say)
        say("no more faults: waiting for what is left")
        fleet.resume_all()
        _await_end(scratch, fleet)
        fleet.stop_all()
        with scratch.connect() as connection:
            fleet.note(connection)
    with scratch.connect() as connection:
        produced.load(connection, scratch.directory / "produced")
        with connection.cursor() as cursor:
            cursor.executemany(_NOTE_FAULT, noted)
        connection.execute("ANALYZE")
        return Result(
            figures=figures.read(connection),
            violations=invariants.violations(connection),
        )


def _faults(
    scratch: Scratch, fleet: Fleet, plan: Plan, faults: Sequence[Fault], say: Say
) -> list[tuple[Any, ...]]:
    """Let faults happen for as long as jobs come in; returns what happened."""
    noted: list[tuple[Any, ...]] = []
    rng = random.Random(plan.seed)  # noqa: S311 - chosen by the seed, guards nothing
    deck = Deck(faults, rng)
    field = Field(scratch=scratch, fleet=fleet, random=rng, lease=plan.lease)
    fleet.await_up()
    producer = _Producer(scratch, plan)
    with producer:
        began = time.monotonic()
        ends_at, gives_up_at = (
            began + plan.seconds,
            began + 2 * plan.seconds + _PATIENCE,
        )
        due = began + plan.fault_every
        while (
            time.monotonic() < ends_at
            or producer.works()
            # A slow machine must not spare the workers one of the faults.
            or (not deck.complete and time.monotonic() < gives_up_at)
        ):
            fleet.tend()
            if time.monotonic() >= due:
                due = time.monotonic() + plan.fault_every * rng.uniform(0.5, 1.5)
                fault = deck.deal()
                what = fault.inject(field) if fault is not None else None
                if fault is not None and what is not None:
                    noted.append((len(noted) + 1, _now(), fault.name, what))
                    say(f"{fault.name}: {what}")
                elif fault is not None:
                    deck.put_back(fault)
                    due = time.monotonic() + _AGAIN_AFTER
            time.sleep(_LOOK_EVERY)
    return noted


class _Producer:
    """The producer's process."""

    def __init__(self, scratch: Scratch, plan: Plan) -> None:
        self._scratch = scratch
        self._arguments = (plan.seed, plan.jobs, plan.seconds)
        self._log = scratch.logs / "producer.log"

    def __enter__(self) -> _Producer:
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [
                    *(sys.executable, "-m", "acw.torture.producer"),
                    *map(str, self._arguments),
                    str(self._scratch.directory / "produced"),
                ],
                cwd=MANAGE.parent,
                env=self._scratch.env(TORTURE_TETHERED="1"),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def works(self) -> bool:
        """Whether jobs are still coming in. Raises TortureError where it has failed."""
        status = self._process.poll()
        if status:
            said = self._log.read_text(errors="replace")[-_LOG_TAIL:]
            raise TortureError(f"the producer has ended with status {status}: {said}")
        return status is None


def _await_end(scratch: Scratch, fleet: Fleet) -> None:
    """Wait until no job is live, or nothing happens any more: what is left then, the checks report."""
    progress, since = None, time.monotonic()
    while time.monotonic() - since < NO_PROGRESS:
        fleet.tend()
        try:
            with scratch.connect() as connection:
                while time.monotonic() - since < NO_PROGRESS:
                    fleet.tend()
                    if not _one(connection.execute(_LIVE).fetchone()):
                        return
                    now = _one(connection.execute(_PROGRESS).fetchone())
                    if now != progress:
                        progress, since = now, time.monotonic()
                    time.sleep(_LOOK_EVERY)
        except UNAVAILABLE:
            time.sleep(_LOOK_EVERY)


def _one(row: tuple[Any, ...] | None) -> Any:
    return row[0] if row else None


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
