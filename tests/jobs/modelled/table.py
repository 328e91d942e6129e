"""A model of the queue's table in plain Python: what each verb may make of each row.

Read beside the statements that it predicts: each rule of leases, attempts and keys stands here a second time, in a
form without SQL. ``tests/jobs/test_model.py`` plays the verbs against both and compares them.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any
from unittest.mock import ANY

from jobs.backoff import JITTER, plain_delay
from jobs.claims import Claim
from jobs.leases import LeasedJob
from jobs.models import LIVE, TERMINAL, Status
from jobs.outcomes import Outcome

Row = dict[str, Any]
"""A row of ``jobs`` as it was read, by column."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time of which only the bounds are known until its row has been read."""

    low: dt.datetime
    high: dt.datetime

    def __add__(self, delay: dt.timedelta) -> Span:
        return Span(self.low + delay, self.high + delay)

    def holds(self, value: object) -> bool:
        return isinstance(value, dt.datetime) and self.low <= value <= self.high


def exactly(time: dt.datetime) -> Span:
    return Span(time, time)


@dataclass(frozen=True, slots=True)
class Failure:
    """What a row of ``job_attempts`` is to hold; an error that is not predicted equals any."""

    number: int
    worker: str
    error: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelJob:
    """One row as it is to be. Each change makes a new one."""

    id: uuid.UUID
    type: str
    queue: str
    priority: int
    unique_key: str | None
    max_attempts: int
    run_at: Span
    status: str = Status.PENDING
    attempts: int = 0
    lease_seq: int = 0
    leased_by: str | None = None
    lease_until: Span | None = None
    completed_at: Span | None = None
    cancel_requested: bool = False
    last_error: str = ""
    failures: tuple[Failure, ...] = ()

    def live(self) -> bool:
        return self.status in LIVE

    def due(self, now: dt.datetime) -> bool:
        return self.status == Status.PENDING and self.run_at.low <= now

    def expired(self, now: dt.datetime) -> bool:
        return self.lease_until is not None and self.lease_until.low < now

    def claimed(self, worker: str, until: Span) -> ModelJob:
        return replace(
            self,
            status=Status.RUNNING,
            attempts=self.attempts + 1,
            lease_seq=self.lease_seq + 1,
            leased_by=worker,
            lease_until=until,
        )

    def extended(self, until: Span) -> ModelJob:
        return replace(self, lease_until=until)

    def finished(self, outcome: Outcome, *, at: Span, worker: str) -> ModelJob | None:
        """The row after its holder's result; None where it is deleted."""
        if outcome.status == Status.COMPLETED and not outcome.keep:
            return None
        return self._ended(
            outcome.status,
            again=at + outcome.delay,
            at=at,
            worker=worker,
            error=outcome.error,
            refund=outcome.refund,
        )

    def reaped(self, *, at: Span, base: dt.timedelta, cap: dt.timedelta) -> ModelJob:
        """The row after its lease was taken back; what the error says is not predicted."""
        delay = plain_delay(self.attempts, base=base, cap=cap)
        return self._ended(
            Status.DEAD if self.attempts >= self.max_attempts else Status.PENDING,
            again=Span(at.low + delay, at.high + delay * (1 + JITTER)),
            at=at,
            worker=self.leased_by or "",
            error=ANY,
        )

    def _ended(
        self,
        status: str,
        *,
        again: Span,
        at: Span,
        worker: str,
        error: str | None,
        refund: bool = False,
    ) -> ModelJob:
        stopped = self.cancel_requested and status != Status.COMPLETED
        if stopped:
            status = Status.CANCELLED
        pending = status == Status.PENDING
        last_error = ANY if stopped else error
        failures = self.failures
        if error is not None:
            failures += (Failure(self.attempts, worker, error),)
        return replace(
            self,
            status=Status(status),
            run_at=again if pending else self.run_at,
            completed_at=None if pending else at,
            attempts=self.attempts - int(refund),
            last_error=self.last_error if last_error is None else last_error,
            failures=failures,
            leased_by=None,
            lease_until=None,
        )

    def retried(self, at: Span) -> ModelJob:
        return replace(
            self,
            status=Status.PENDING,
            attempts=0,
            run_at=at,
            completed_at=None,
            cancel_requested=False,
        )

    def cancelled(self, at: Span) -> ModelJob:
        """A running one is only asked to stop."""
        if self.status == Status.RUNNING:
            return replace(self, cancel_requested=True)
        return replace(self, status=Status.CANCELLED, completed_at=at)

    def made_due(self, at: Span) -> ModelJob:
        return replace(self, run_at=at)

    def shifted(self, by: dt.timedelta) -> ModelJob:
        """The same after so much time has passed: each of its times lies further back."""
        return replace(
            self,
            run_at=self.run_at + -by,
            lease_until=self.lease_until and self.lease_until + -by,
            completed_at=self.completed_at and self.completed_at + -by,
        )


Changes = Mapping[uuid.UUID, ModelJob | None]
"""What becomes of rows; None is that the row is gone."""


@dataclass(slots=True)
class Model:
    """All that has committed, and the database's clock when it was last looked at."""

    now: dt.datetime
    jobs: dict[uuid.UUID, ModelJob] = field(default_factory=dict)
    enqueued: int = 0
    gone: set[uuid.UUID] = field(default_factory=set)

    def apply(self, changes: Changes) -> None:
        for job_id, job in changes.items():
            if job is None:
                del self.jobs[job_id]
                self.gone.add(job_id)
            else:
                self.enqueued += job_id not in self.jobs
                self.jobs[job_id] = job

    def holds(self, lease: LeasedJob) -> bool:
        """Whether this lease is the one whose results count."""
        job = self.jobs.get(lease.id)
        return (
            job is not None
            and job.status == Status.RUNNING
            and job.lease_seq == lease.lease_seq
        )

    def holder_of(self, key: str | None) -> uuid.UUID | None:
        """The live job that has the key."""
        if key is None:
            return None
        live = (j.id for j in self.jobs.values() if j.live() and j.unique_key == key)
        return next(live, None)

    def due(
        self, wanted: Claim, locked: Collection[uuid.UUID], changed: Changes
    ) -> list[ModelJob]:
        """What this claim finds and locks, in order; ``changed`` is what the same call has written before."""
        levels: Counter[tuple[str, int]] = Counter()
        found = []
        now = {**self.jobs, **changed}.values()
        due = [job for job in now if job and job.due(self.now) and job.id not in locked]
        for job in sorted(due, key=_in_order):
            level = job.queue, job.priority
            if job.type in wanted.costs and levels[level] < wanted.limits.get(level, 0):
                levels[level] += 1
                found.append(job)
        return found

    def purgeable(
        self, retentions: Mapping[str, dt.timedelta], locked: Collection[uuid.UUID]
    ) -> set[uuid.UUID]:
        return {
            job.id
            for job in self.jobs.values()
            if job.completed_at is not None
            and job.id not in locked
            and job.completed_at.low < self.now - retentions[job.status]
        }

    def pin(self, rows: Mapping[uuid.UUID, Row]) -> None:
        """Take over what was read where only bounds were known."""
        for job_id, job in self.jobs.items():
            row = rows[job_id]
            self.jobs[job_id] = replace(
                job,
                run_at=exactly(row["run_at"]),
                lease_until=row["lease_until"] and exactly(row["lease_until"]),
                completed_at=row["completed_at"] and exactly(row["completed_at"]),
                last_error=row["last_error"],
            )


def _in_order(job: ModelJob) -> tuple[int, dt.datetime, int]:
    return job.priority, job.run_at.low, job.id.int


def affordable(found: Iterable[ModelJob], wanted: Claim) -> list[ModelJob]:
    """What a claim leases of what it finds."""
    levels: Counter[tuple[str, int]] = Counter()
    batch: list[ModelJob] = []
    seconds = 0.0
    for job in found:
        if seconds >= wanted.budget:
            break
        batch.append(job)
        seconds += wanted.costs[job.type]
        level = job.queue, job.priority
        levels[level] += 1
        # Behind the last that a level may give, there may be others of that level.
        if levels[level] == wanted.limits[level]:
            break
    return batch


_TIMES = {"run_at", "lease_until", "completed_at"}
_NOT_COLUMNS = {"failures"}


def differences(job: ModelJob, row: Row, failures: tuple[Failure, ...]) -> list[str]:
    """How the row that was read differs from the one predicted, as sentences."""
    found = []
    for name in [f.name for f in fields(job) if f.name not in _NOT_COLUMNS]:
        expected, value = getattr(job, name), row[name]
        same = (
            expected.holds(value)
            if name in _TIMES and expected is not None
            else expected == value
        )
        if not same:
            found.append(f"{name} is {value!r}, expected {expected!r}")
    if job.failures != failures:
        found.append(f"attempts are {failures!r}, expected {job.failures!r}")
    return found


def broken_promises(
    before: Mapping[uuid.UUID, Row],
    after: Mapping[uuid.UUID, Row],
    *,
    retried: Collection[uuid.UUID],
) -> list[str]:
    """What no step may do, whatever the model says; ``retried`` are those that an operator has tried again in it."""
    found = []
    keys = [row["unique_key"] for row in after.values() if row["status"] in LIVE]
    keys = [key for key in keys if key is not None]
    if len(keys) != len(set(keys)):
        found.append(f"unique keys that are live twice: {sorted(keys)}")
    for job_id, row in after.items():
        terminal, running = row["status"] in TERMINAL, row["status"] == Status.RUNNING
        if terminal != (row["completed_at"] is not None):
            found.append(f"{job_id} is {row['status']}, completed_at does not say so")
        if running != (row["lease_until"] is not None) or running != (
            row["leased_by"] is not None
        ):
            found.append(f"{job_id} is {row['status']}, its lease does not say so")
        if row["attempts"] > row["max_attempts"]:
            found.append(
                f"{job_id}: attempt {row['attempts']} of {row['max_attempts']}"
            )
        earlier = before.get(job_id)
        if earlier is None:
            continue
        if row["lease_seq"] < earlier["lease_seq"]:
            found.append(f"{job_id}: lease_seq fell")
        changed = row != earlier and job_id not in retried
        if earlier["status"] in TERMINAL and changed:
            found.append(f"{job_id} was {earlier['status']} and has changed")
    return found
