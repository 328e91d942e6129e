"""What is done to the workers while they work."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acw.torture.fleet import Fleet, Worker
from acw.torture.scratch import Scratch

# Only this run's: no other session has the name.
_CUT = """
SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM (
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name = %s
    ORDER BY random() LIMIT %s
) AS session
"""
_MOST_CUT = 12


@dataclass(frozen=True, kw_only=True)
class Field:
    """Where faults happen; ``lease`` is in seconds."""

    scratch: Scratch
    fleet: Fleet
    random: random.Random
    lease: float


@dataclass(frozen=True, kw_only=True)
class Fault:
    """``inject`` does it and says to what; None where there was nothing to do it to.

    It comes ``often`` times in each round, or ``once`` and never again.
    """

    name: str
    inject: Callable[[Field], str | None]
    often: int = 1
    once: bool = False


class Deck:
    """Deals the faults in random order, each as often as it is in a round before any comes again."""

    def __init__(self, faults: Sequence[Fault], rng: random.Random) -> None:
        self._round = [fault for fault in faults for _ in range(fault.often)]
        self._random = rng
        self._left: list[Fault] = []
        self._put_back: list[Fault] = []
        self._to_come = {fault.name for fault in faults}

    @property
    def complete(self) -> bool:
        """Whether each fault has happened at least once."""
        return not self._to_come

    def deal(self) -> Fault | None:
        """The next one, None where there is none any more."""
        if not self._left:
            self._left = self._round + self._put_back
            self._put_back = []
            self._random.shuffle(self._left)
        if not self._left:
            return None
        fault = self._left.pop()
        if fault.once and fault in self._round:
            self._round.remove(fault)
        self._to_come.discard(fault.name)
        return fault

    def put_back(self, fault: Fault) -> None:
        """It could not happen now: into the next round."""
        self._put_back.append(fault)
        self._to_come.add(fault.name)


def _kill(field: Field) -> str | None:
    """Also one that is suspended: it never gets to know what happened to its leases."""
    worker = _choose(field, field.fleet.at_work())
    if worker is None:
        return None
    field.fleet.kill(worker)
    return str(worker.process.pid)


def _suspend(field: Field) -> str | None:
    """For longer than the lease."""
    awake = [worker for worker in field.fleet.at_work() if not worker.suspended]
    worker = _choose(field, awake)
    if worker is None:
        return None
    seconds = field.lease * field.random.uniform(1.2, 2.0)
    field.fleet.suspend(worker, seconds)
    return f"{worker.process.pid} for {seconds:.1f} s"


def _stop(field: Field) -> str | None:
    worker = _choose(field, field.fleet.at_work())
    if worker is None:
        return None
    field.fleet.stop(worker)
    return str(worker.process.pid)


def _cut(field: Field) -> str | None:
    most = field.random.randint(1, _MOST_CUT)
    with field.scratch.connect() as connection:
        row = connection.execute(_CUT, [field.scratch.worker_sessions, most]).fetchone()
    return f"{row[0]} sessions" if row and row[0] else None


def _choose(field: Field, workers: Sequence[Worker]) -> Worker | None:
    return field.random.choice(workers) if workers else None


FAULTS = (
    Fault(name="kill -9", inject=_kill, often=2),
    Fault(name="SIGSTOP, SIGCONT", inject=_suspend, often=2),
    Fault(name="SIGTERM", inject=_stop),
    Fault(name="sessions terminated", inject=_cut, often=2),
)
"""What needs no server of one's own."""
