"""How leases end without a result: crashes, suspended workers, the reaper; and the purge, the clock, and who can write at all."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from django.conf import settings as django_settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from jobs import leases, outcomes, recovery
from jobs.connection import Executes
from jobs.journal import Notes, Remains
from jobs.lease_lengths import LeaseLengths
from jobs.leases import LeasedJob, LeaseKey
from jobs.models import TERMINAL, Status
from jobs.outcomes import Outcome
from jobs.runners import job_purge, job_reaper
from tests.jobs.modelled.stage import (
    GONE,
    HELD,
    HOUR,
    KEPT,
    LENGTHS,
    Stage,
    Worker,
    one,
)
from tests.jobs.modelled.table import ModelJob

COMPLETIONS = {KEPT: outcomes.COMPLETED, GONE: outcomes.COMPLETED_AND_DELETED}


RESULTS = {
    "completed": outcomes.COMPLETED,
    "completed and deleted": outcomes.COMPLETED_AND_DELETED,
    "given back": outcomes.NOT_BEGUN,
    "dead": outcomes.dead("x"),
}


_TIME_PASSES = """
UPDATE jobs SET run_at = run_at - %(by)s, lease_until = lease_until - %(by)s, completed_at = completed_at - %(by)s,
    started_at = started_at - %(by)s, created_at = created_at - %(by)s, updated_at = updated_at - %(by)s,
    cancel_requested_at = cancel_requested_at - %(by)s
"""
_EXTENDED = (
    "SELECT id FROM jobs WHERE lease_until > statement_timestamp() + %(by)s::interval"
)
_EXPIRE = "UPDATE jobs SET lease_until = statement_timestamp() - interval '1 second' WHERE id = ANY(%s)"


NOTED = st.sampled_from(["nothing", "all", "not all"])


class Losing(Stage):
    """What happens to workers, and to rows by themselves."""

    @precondition(lambda self: self.engaged())
    @rule(
        data=st.data(),
        noted=NOTED,
        commits=st.booleans(),
    )
    def crash(self, data: st.DataObject, noted: str, commits: bool) -> None:
        self.lose(one(data, self.engaged()), noted, commits=commits)

    def lose(self, worker: Worker, noted: str, *, commits: bool) -> None:
        """Its leases run out, or its host takes them back by what it has ``noted``."""
        for each in [each for each in self.opened if each.actor is worker.actor]:
            # Before its connection goes, which the server may notice at any time.
            self.close(each, commit=False)
        worker.actor.crash()
        notes = _notes(worker, complete=noted == "all")
        worker.forget()
        if noted != "nothing":
            self.recover(worker, notes, commits=commits)

    def recover(self, worker: Worker, notes: Notes, *, commits: bool) -> None:
        def recovers() -> int:
            return recovery._take_back(
                Remains(worker=worker.name, notes=notes, crash="", again=False)
            )

        touches = {
            job.id for job in self.model.jobs.values() if job.leased_by == worker.name
        }
        self.perform(
            worker.actor, recovers, held=False, commits=commits, touches=touches
        )
        at = self.during()
        changes: dict[uuid.UUID, ModelJob | None] = {}
        for job in self.model.jobs.values():
            key = job.id, job.lease_seq
            if job.id not in touches or job.leased_by != worker.name:
                continue
            if key in notes.done:
                outcome = COMPLETIONS[job.type]
                changes[job.id] = job.finished(outcome, at=at, worker=worker.name)
            elif key in notes.begun:
                changes[job.id] = self.reaped(job, at)
            elif notes.complete:
                outcome = outcomes.NOT_BEGUN
                changes[job.id] = job.finished(outcome, at=at, worker=worker.name)
        self.seen["recovered"] += len(changes)
        self.settle(worker.actor, changes, pid=None)

    def engaged(self) -> list[Worker]:
        return [
            worker
            for worker in self.workers
            if worker.held() or worker.unheard or not self.is_free(worker.actor)
        ]

    @precondition(lambda self: self.opened)
    @rule(data=st.data(), commit=st.booleans())
    def end_transaction(self, data: st.DataObject, commit: bool) -> None:
        self.close(one(data, self.opened), commit=commit)

    @rule(
        by=st.sampled_from([HOUR, 5 * HOUR, 200 * HOUR, 1000 * HOUR]),
        commits=st.booleans(),
    )
    def time_passes(self, by: dt.timedelta, commits: bool) -> None:
        for each in list(self.opened):
            self.close(each, commit=commits)
        if self.model.jobs:
            # Reads what was committed just now, so that each time is exact before it is moved.
            self.the_table_is_what_the_model_says()
        self.actors.observer.execute(_TIME_PASSES, {"by": by})
        self.model.jobs = {
            job_id: job.shifted(by) for job_id, job in self.model.jobs.items()
        }
        self.rows = {
            job_id: {
                name: value - by if isinstance(value, dt.datetime) else value
                for name, value in row.items()
            }
            for job_id, row in self.rows.items()
        }

    @precondition(lambda self: self.expirable())
    @rule(data=st.data())
    def lease_expires(self, data: st.DataObject) -> None:
        running = self.expirable()
        self.expire([running[data.draw(st.integers(0, len(running) - 1))]])

    @precondition(
        lambda self: self.expirable() and self.is_free(self.actors.housekeeper)
    )
    @rule(data=st.data(), held=HELD)
    def outlive_leases(self, data: st.DataObject, held: bool) -> None:
        """A worker is suspended for so long that what it holds is taken back."""
        running = [self.model.jobs[job_id] for job_id in self.expirable()]
        names = sorted({job.leased_by or "" for job in running})
        self.suspend(data.draw(st.sampled_from(names)))
        self.take_back(held=held)

    def suspend(self, name: str) -> None:
        """Let all that the worker holds expire."""
        running = [self.model.jobs[job_id] for job_id in self.expirable()]
        self.expire([job.id for job in running if job.leased_by == name])
        self.the_table_is_what_the_model_says()

    def expire(self, ids: list[uuid.UUID]) -> None:
        self.actors.observer.execute(_EXPIRE, [ids])
        ago = self.during() + -dt.timedelta(seconds=1)
        for job_id in ids:
            self.model.jobs[job_id] = self.model.jobs[job_id].extended(ago)

    def expirable(self) -> list[uuid.UUID]:
        running = [j for j in self.model.jobs.values() if j.status == Status.RUNNING]
        locked = self.locked()
        return [job.id for job in running if job.id not in locked]

    def can_keep_house(self, *statuses: Status) -> bool:
        some = any(job.status in statuses for job in self.model.jobs.values())
        return some and self.is_free(self.actors.housekeeper)

    @precondition(lambda self: self.can_keep_house(Status.RUNNING))
    @rule(held=HELD)
    def reap(self, held: bool) -> None:
        self.take_back(held=held)

    def take_back(self, *, held: bool) -> None:
        def reaps() -> Mapping[str, int]:
            return job_reaper(threading.Event())

        locked = self.locked()
        summary, pid = self.perform(self.actors.housekeeper, reaps, held=held)
        at = self.during()
        changes = {
            job.id: self.reaped(job, at)
            for job in self.model.jobs.values()
            if job.expired(self.model.now) and job.id not in locked
        }
        became = Counter(str(job.status) for job in changes.values())
        self.seen.update(f"reaped: {status}" for status in became.elements())
        assert summary["returned"] == became[Status.PENDING]
        assert summary["dead"] == became[Status.DEAD]
        assert summary["failed"] == 0
        self.settle(self.actors.housekeeper, changes, pid=pid)

    @precondition(lambda self: self.can_keep_house(*TERMINAL))
    @rule()
    def purge(self) -> None:
        def purges() -> Mapping[str, int]:
            return job_purge(threading.Event())

        expected = self.model.purgeable(_retentions(), self.locked())
        summary, pid = self.perform(self.actors.housekeeper, purges, held=False)
        assert sum(summary.values()) == len(expected)
        self.seen["purged"] += len(expected)
        self.settle(self.actors.housekeeper, dict.fromkeys(expected), pid=pid)

    @precondition(lambda self: self.untried)
    @rule()
    def try_all_leases_ever(self) -> None:
        """Of all that were ever given out, exactly the current ones can write."""
        self.untried = False
        locked = self.locked()
        tried = [lease for lease in self.leases.values() if lease.id not in locked]
        current = {lease.key for lease in tried if self.model.holds(lease)}
        observer = self.actors.observer
        observer.execute("BEGIN", [])
        try:
            stale = [lease for lease in tried if lease.key not in current]
            leases.extend(observer, stale, LeaseLengths(20 * HOUR))
            assert observer.execute(_EXTENDED, {"by": 18 * HOUR}) == []
            news = leases.extend(observer, tried, LENGTHS)
            assert news.lost == {lease.key for lease in tried} - current
            for name, outcome in RESULTS.items():
                written = _written(observer, tried, outcome)
                assert written == current, f"{name} by a lease that has passed on"
        finally:
            observer.execute("ROLLBACK", [])
        self.seen["leases that hold"] += len(current)
        self.seen["leases that do not hold"] += len(tried) - len(current)


def _notes(worker: Worker, *, complete: bool) -> Notes:
    """What the worker's journal tells once it is gone."""
    notes = Notes(b"")
    notes.complete = complete
    notes.begun |= worker.begun
    notes.done |= {
        job.key for job, outcome in worker.done if outcome.status == Status.COMPLETED
    }
    return notes


def _written(
    connection: Executes, tried: Iterable[LeasedJob], outcome: Outcome
) -> set[LeaseKey]:
    """Who of them can write this result; each is tried on the same rows."""
    written = set()
    for batch in _of_different_jobs(tried):
        connection.execute("SAVEPOINT tried", [])
        if outcome.status == Status.COMPLETED:
            kept, gone = (batch, []) if outcome.keep else ([], batch)
            lost = leases.complete(connection, leases.completion(kept, gone))
            written |= {lease.key for lease in batch if lease.id not in lost}
        else:
            done = leases.finish(connection, [(j, outcome) for j in batch], worker="w")
            written |= {lease.key for lease in batch if lease.id in done}
        connection.execute("ROLLBACK TO SAVEPOINT tried", [])
    return written


def _of_different_jobs(tried: Iterable[LeasedJob]) -> Iterator[list[LeasedJob]]:
    """In as few batches as there can be: a job's id alone does not tell which of its leases has written."""
    leases_of: dict[uuid.UUID, list[LeasedJob]] = {}
    for lease in tried:
        leases_of.setdefault(lease.id, []).append(lease)
    while leases_of:
        yield [mine.pop() for mine in leases_of.values()]
        leases_of = {job_id: mine for job_id, mine in leases_of.items() if mine}


def _retentions() -> dict[str, dt.timedelta]:
    completed = django_settings.JOBS_JOB_PURGE_COMPLETED_RETENTION
    return {
        Status.COMPLETED: completed,
        Status.CANCELLED: completed,
        Status.DEAD: django_settings.JOBS_JOB_PURGE_DEAD_RETENTION,
    }
