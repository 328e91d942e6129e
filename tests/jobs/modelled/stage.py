"""What all rules stand on: who acts, transactions that stay open, and the comparison after each step."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from django.conf import settings as django_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from jobs import registry
from jobs.exceptions import Cancelled, LeaseLost, Permanent, Snooze
from jobs.lease_lengths import LeaseLengths
from jobs.leases import LeasedJob, LeaseKey
from jobs.outcomes import Outcome
from jobs.testing import PATIENCE
from tests.jobs.modelled.actors import Actor, Actors
from tests.jobs.modelled.table import (
    Changes,
    Failure,
    Model,
    ModelJob,
    Row,
    Span,
    broken_promises,
    differences,
)

NOTHING: Changes = MappingProxyType({})
HOUR = dt.timedelta(hours=1)
KEPT, GONE = "model.kept", "model.gone"
LEASES = {KEPT: 2 * HOUR, GONE: 3 * HOUR}
LENGTHS = LeaseLengths(LEASES[KEPT], {GONE: LEASES[GONE]})
_JOBS = """
SELECT id, type, queue, priority, unique_key, max_attempts, run_at, status, attempts, lease_seq, leased_by, lease_until,
    completed_at, cancel_requested_at, last_error, started_at, created_at, updated_at, payload::text
FROM jobs
"""
_COLUMNS = [name.strip() for name in _JOBS[7 : _JOBS.index("FROM")].split(",")]
_ATTEMPTS = "SELECT job_id, number, worker, error FROM job_attempts ORDER BY id"


class Handlers:
    """The handlers of both types: they do what they were told last."""

    BEHAVIOURS: dict[str, BaseException | None] = {
        "returns": None,
        "fails": ValueError("broken"),
        "gives up": Permanent("never"),
        "snoozes": Snooze(3 * HOUR),
        "snoozes no time": Snooze(0 * HOUR),
        "cancels": Cancelled("not wanted"),
        "notices its lost lease": LeaseLost("gone"),
    }

    def __init__(self) -> None:
        self.behaviour = "returns"
        registry.job_handler(KEPT)(self.run)
        registry.job_handler(GONE, keep_completed=False)(self.run)

    def run(self, context: object, payload: object) -> None:
        error = self.BEHAVIOURS[self.behaviour]
        if error is not None:
            raise error


@dataclass
class Worker:
    """What one worker process believes, which may be long past."""

    actor: Actor
    waiting: list[LeasedJob] = field(default_factory=list)
    running: LeasedJob | None = None
    done: list[tuple[LeasedJob, Outcome]] = field(default_factory=list)
    unheard: list[LeasedJob] = field(default_factory=list)
    begun: set[LeaseKey] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.actor.name

    def held(self) -> list[LeasedJob]:
        running = [] if self.running is None else [self.running]
        return [*running, *self.waiting, *(job for job, _ in self.done)]

    def forget(self) -> None:
        self.waiting, self.running, self.done, self.unheard = [], None, [], []
        self.begun = set()


@dataclass(kw_only=True)
class Open:
    """A transaction that stays open, with what its commit makes of the rows."""

    actor: Actor
    pid: int
    changes: Changes
    locks: set[uuid.UUID]
    keys: set[str | None]
    committed: Callable[[], None]

    @property
    def name(self) -> str:
        return self.actor.name


Named = TypeVar("Named", Worker, Open)


def some(count: int, *, most: int = 3) -> st.SearchStrategy[list[int]]:
    """Up to ``most`` of so many numbers from 0, each once."""
    return st.lists(st.integers(0, count - 1), min_size=1, max_size=most, unique=True)


def one(data: st.DataObject, named: Sequence[Named]) -> Named:
    """One of them, by its name, which a failure can print."""
    name = data.draw(st.sampled_from([each.name for each in named]))
    return next(each for each in named if each.name == name)


BEHAVIOURS = st.sampled_from(list(Handlers.BEHAVIOURS))
MOSTLY = st.sampled_from([True, True, True, False])
HELD = st.sampled_from([False, False, False, False, True])


class Stage(RuleBasedStateMachine):
    """In a rule, ``held`` leaves the transaction open, and ``commits`` is how one ends that is in the way."""

    seen: Counter[str] = Counter()
    """What has happened in all sequences, so that it can be told whether they come to what matters."""

    def __init__(self, actors: Actors, handlers: Handlers) -> None:
        super().__init__()
        self.seen["sequences"] += 1
        self.actors = actors
        self.handlers = handlers
        self.workers = [Worker(actor) for actor in actors.workers]
        self.opened: list[Open] = []
        self.leases: dict[LeaseKey, LeasedJob] = {}
        self.ever: list[uuid.UUID] = []
        self.rows: dict[uuid.UUID, Row] = {}
        self.retried: set[uuid.UUID] = set()
        self.untried = False
        actors.observer.execute("DELETE FROM jobs", [])
        assert actors.observer.execute("SELECT count(*) FROM job_attempts", []) == [
            (0,)
        ]
        self.model = Model(self.clock())

    def teardown(self) -> None:
        self.actors.roll_back()

    def clock(self) -> dt.datetime:
        ((now,),) = self.actors.observer.execute("SELECT clock_timestamp()", [])
        assert isinstance(now, dt.datetime)
        return now

    def during(self) -> Span:
        """The time of a statement of this step."""
        return Span(self.model.now, self.clock())

    def is_free(self, actor: Actor) -> bool:
        return all(each.actor is not actor for each in self.opened)

    def free_workers(self) -> list[Worker]:
        return [worker for worker in self.workers if self.is_free(worker.actor)]

    def locked(self) -> set[uuid.UUID]:
        return {job_id for each in self.opened for job_id in each.locks}

    def perform(
        self,
        actor: Actor,
        action: Callable[[], Any],
        *,
        held: bool,
        commits: bool = True,
        touches: Collection[uuid.UUID] = (),
        keys: Collection[str | None] = (),
    ) -> tuple[Any, int | None]:
        """Have the actor do it; what it waits for is ended. Returns what came of it, and the process that holds a transaction."""
        pid = actor.begin() if held else None
        call = actor.start(action)
        expected = [
            each
            for each in self.opened
            if set(touches) & each.locks or set(keys) & each.keys
        ]
        while expected and (blocker := self.actors.blocker(call)) is not None:
            (holder,) = [each for each in expected if each.pid == blocker]
            expected.remove(holder)
            self.seen[f"{action.__name__} waits for {holder.actor.name}"] += 1
            self.close(holder, commit=commits)
        return call.result(PATIENCE), pid

    def settle(
        self,
        actor: Actor,
        changes: Changes,
        *,
        pid: int | None,
        locks: Collection[uuid.UUID] = (),
        committed: Callable[[], None] = lambda: None,
    ) -> None:
        """Take in what was done, at once or when its transaction commits."""
        self.untried = bool(self.leases)
        if pid is None:
            self.model.apply(changes)
            committed()
            return
        jobs = [job or self.model.jobs[job_id] for job_id, job in changes.items()]
        keys = {job.unique_key for job in jobs} - {None}
        self.opened.append(
            Open(
                actor=actor,
                pid=pid,
                changes=changes,
                locks={*changes, *locks},
                keys=keys,
                committed=committed,
            )
        )

    def close(self, each: Open, *, commit: bool) -> None:
        self.opened.remove(each)
        each.actor.end(commit=commit)
        if commit:
            self.model.apply(each.changes)
            each.committed()

    def some_due(self) -> bool:
        return any(job.due(self.model.now) for job in self.model.jobs.values())

    def reaped(self, job: ModelJob, at: Span) -> ModelJob:
        return job.reaped(
            at=at,
            base=django_settings.JOBS_BACKOFF_BASE,
            cap=django_settings.JOBS_BACKOFF_MAX,
        )

    @invariant()
    def the_table_is_what_the_model_says(self) -> None:
        self.seen["steps"] += 1
        observer = self.actors.observer
        rows = [
            dict(zip(_COLUMNS, row, strict=True)) for row in observer.execute(_JOBS, [])
        ]
        failures: dict[uuid.UUID, tuple[Failure, ...]] = {}
        for job_id, *values in observer.execute(_ATTEMPTS, []):
            failures[job_id] = (*failures.get(job_id, ()), Failure(*values))
        now = self.clock()
        after = {row["id"]: row for row in rows}
        assert set(after) == set(self.model.jobs)
        assert set(failures) <= set(after)
        # Nothing is lost: what was enqueued is there, or a completion or a purge has removed it.
        assert self.model.enqueued == len(after) + len(self.model.gone)
        for job_id, row in after.items():
            row["cancel_requested"] = row["cancel_requested_at"] is not None
            found = differences(self.model.jobs[job_id], row, failures.get(job_id, ()))
            assert not found, f"job {self.ever.index(job_id)}: {found}"
        assert not broken_promises(self.rows, after, retried=self.retried)
        self.model.pin(after)
        self.model.now = now
        self.rows, self.retried = after, set()
