"""What workers do with the jobs that they believe to hold."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from jobs import claims, finisher, leases, outcomes
from jobs.claims import Claim
from jobs.execution import Execution
from jobs.handler_connections import HandlerConnections
from jobs.leases import LeasedJob
from jobs.models import Priority, Status
from jobs.outcomes import Outcome
from tests.jobs.modelled.people import QUEUES
from tests.jobs.modelled.stage import (
    BEHAVIOURS,
    GONE,
    HELD,
    KEPT,
    LEASES,
    LENGTHS,
    MOSTLY,
    NOTHING,
    Stage,
    Worker,
    one,
    some,
)
from tests.jobs.modelled.table import Changes, ModelJob, affordable

CLAIMS: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    types=st.sampled_from([(KEPT, GONE), (KEPT, GONE), (KEPT, GONE), (KEPT,), (GONE,)]),
    queues=st.sampled_from([QUEUES, QUEUES, QUEUES, QUEUES[:1], QUEUES[1:]]),
    most=st.integers(1, 3),
    budget=st.sampled_from([10.0, 10.0, 1.0, 0.5]),
)


class Working(Stage):
    """Several workers, and a heartbeat for all of them."""

    @precondition(lambda self: self.free_workers())
    @rule(data=st.data(), asks=CLAIMS, heard=MOSTLY, held=HELD)
    def claim(
        self, data: st.DataObject, asks: dict[str, Any], heard: bool, held: bool
    ) -> None:
        worker = one(data, self.free_workers())
        self.ask(worker, asks, heard=heard, held=held)

    def ask(
        self, worker: Worker, asks: dict[str, Any], *, heard: bool, held: bool
    ) -> None:
        wanted = _claim(worker, **asks)
        seen = self.model.due(wanted, self.locked(), NOTHING)

        def claims_() -> list[LeasedJob]:
            return claims.claim(worker.actor.queue, wanted)

        batch, pid = self.perform(worker.actor, claims_, held=held)
        self.take(worker, wanted, batch, seen, heard=heard, pid=pid)

    def take(
        self,
        worker: Worker,
        wanted: Claim | None,
        batch: list[LeasedJob],
        seen: list[ModelJob],
        *,
        heard: bool,
        pid: int | None,
        changes: Changes = NOTHING,
    ) -> None:
        """Compare what was claimed with what should have been, and hand it to the worker."""
        now = self.during()
        expected = affordable(seen, wanted) if wanted else []
        claimed = {
            job.id: job.claimed(worker.name, now + LEASES[job.type]) for job in expected
        }
        assert [(job.id, job.lease_seq, job.attempts) for job in batch] == [
            (job.id, job.lease_seq, job.attempts) for job in claimed.values()
        ]
        for lease in batch:
            job = claimed[lease.id]
            assert (lease.type, lease.queue, lease.max_attempts) == (
                job.type,
                job.queue,
                job.max_attempts,
            )
            assert lease.priority == job.priority
            assert job.run_at.holds(lease.run_at)
        self.settle(
            worker.actor,
            {**changes, **claimed},
            pid=pid,
            locks={job.id for job in seen},
            committed=partial(self.hand_over, worker, batch, heard=heard),
        )

    def hand_over(self, worker: Worker, batch: list[LeasedJob], *, heard: bool) -> None:
        self.seen["claimed"] += len(batch)
        for lease in batch:
            assert lease.key not in self.leases, "two holders of one lease"
            self.leases[lease.key] = lease
        (worker.waiting if heard else worker.unheard).extend(batch)

    @precondition(lambda self: any(worker.unheard for worker in self.workers))
    @rule(data=st.data())
    def hear(self, data: st.DataObject) -> None:
        worker = one(data, [w for w in self.workers if w.unheard])
        worker.waiting += worker.unheard
        worker.unheard = []

    @precondition(lambda self: any(w.waiting and not w.running for w in self.workers))
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        able = [w for w in self.workers if w.waiting and not w.running]
        self.start_next(one(data, able))

    def start_next(self, worker: Worker) -> None:
        worker.running = worker.waiting.pop(0)
        worker.begun.add(worker.running.key)

    @precondition(lambda self: any(w.running for w in self.free_workers()))
    @rule(data=st.data(), behaviour=BEHAVIOURS)
    def run(self, data: st.DataObject, behaviour: str) -> None:
        worker = one(data, [w for w in self.free_workers() if w.running])
        lease = worker.running
        assert lease is not None
        worker.running = None
        self.execute(worker, lease, behaviour)

    def execute(self, worker: Worker, lease: LeasedJob, behaviour: str) -> None:
        worker.begun.add(lease.key)
        self.handlers.behaviour = behaviour
        outcome = worker.actor.do(lambda: Execution(lease).run(HandlerConnections()))
        if outcome is not None:
            worker.done.append((lease, outcome))

    @precondition(lambda self: self.free_workers() and self.some_due())
    @rule(
        data=st.data(),
        behaviour=BEHAVIOURS,
        writes=st.sampled_from([True, True, False]),
        commits=st.booleans(),
    )
    def work(
        self, data: st.DataObject, behaviour: str, writes: bool, commits: bool
    ) -> None:
        """What most jobs meet with: it brings sequences far in few steps."""
        worker = one(data, self.free_workers())
        self.claim_and_execute(worker, behaviour)
        if writes and worker.done:
            self.flush(worker, None, heard=True, commits=commits)

    def claim_and_execute(self, worker: Worker, behaviour: str) -> None:
        wanted = _claim(worker, types=(KEPT, GONE), queues=QUEUES, most=3, budget=10)
        seen = self.model.due(wanted, self.locked(), NOTHING)
        batch = worker.actor.do(lambda: claims.claim(worker.actor.queue, wanted))
        self.take(worker, wanted, batch, seen, heard=True, pid=None)
        for lease in batch:
            worker.waiting.remove(lease)
            self.execute(worker, lease, behaviour)

    @precondition(lambda self: any(w.running for w in self.workers))
    @rule(data=st.data())
    def interrupt(self, data: st.DataObject) -> None:
        worker = one(data, [w for w in self.workers if w.running])
        assert worker.running is not None
        worker.done.append((worker.running, outcomes.interrupted("told to stop")))
        worker.running = None

    @precondition(lambda self: any(w.waiting for w in self.workers))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        worker = one(data, [w for w in self.workers if w.waiting])
        number = data.draw(st.integers(0, len(worker.waiting) - 1))
        lease = worker.waiting.pop(number)
        worker.done.append((lease, outcomes.NOT_BEGUN))

    @precondition(lambda self: any(w.done for w in self.free_workers()))
    @rule(data=st.data(), heard=MOSTLY, held=HELD, commits=st.booleans())
    def write(
        self, data: st.DataObject, heard: bool, held: bool, commits: bool
    ) -> None:
        """Some results in one statement each; where no answer is heard, they will be written again."""
        worker = one(data, [w for w in self.free_workers() if w.done])
        done = [worker.done[number] for number in data.draw(some(len(worker.done)))]
        self.write_some(worker, done, heard=heard, held=held, commits=commits)

    def write_some(
        self,
        worker: Worker,
        done: list[tuple[LeasedJob, Outcome]],
        *,
        heard: bool,
        held: bool,
        commits: bool,
    ) -> None:
        kept = [j for j, o in done if o.status == Status.COMPLETED and o.keep]
        gone = [j for j, o in done if o.status == Status.COMPLETED and not o.keep]
        others = [entry for entry in done if entry[1].status != Status.COMPLETED]
        queue = worker.actor.queue

        def writes() -> set[uuid.UUID]:
            written = set[uuid.UUID]()
            if kept or gone:
                ended = {job.id for job in (*kept, *gone)}
                written |= ended - leases.complete(queue, leases.completion(kept, gone))
            if others:
                written |= set(leases.finish(queue, others, worker=worker.name))
            return written

        written, pid = self.perform(
            worker.actor, writes, held=held, commits=commits, touches=self.fitting(done)
        )
        changes = self.results(worker, done)
        assert written == set(changes)
        self.settle(
            worker.actor,
            changes,
            pid=pid,
            committed=partial(_forget, worker, done if heard else []),
        )

    @precondition(lambda self: any(w.done for w in self.free_workers()))
    @rule(
        data=st.data(),
        asks=st.none() | CLAIMS,
        heard=MOSTLY,
        commits=st.booleans(),
    )
    def write_all(
        self,
        data: st.DataObject,
        asks: dict[str, Any] | None,
        heard: bool,
        commits: bool,
    ) -> None:
        """Everything, as workers do, perhaps with the next claim."""
        worker = one(data, [w for w in self.free_workers() if w.done])
        self.flush(worker, asks, heard=heard, commits=commits)

    def flush(
        self,
        worker: Worker,
        asks: dict[str, Any] | None,
        *,
        heard: bool,
        commits: bool,
    ) -> None:
        done = list(worker.done)
        touches = self.fitting(done)
        if touches & self.locked():
            # What it takes while it waits, and what not, is not foretold.
            asks = None
        wanted = _claim(worker, **asks) if asks else None

        def writes_all() -> list[LeasedJob]:
            return finisher.write(
                worker.actor.queue, list(done), worker=worker.name, wanted=wanted
            )

        batch, pid = self.perform(
            worker.actor, writes_all, held=False, commits=commits, touches=touches
        )
        changes = self.results(worker, done)
        seen = self.model.due(wanted, self.locked(), changes) if wanted else []
        if heard:
            worker.done.clear()
        self.take(worker, wanted, batch, seen, heard=heard, pid=pid, changes=changes)

    def fitting(self, done: list[tuple[LeasedJob, Outcome]]) -> set[uuid.UUID]:
        return {job.id for job, _ in done if self.model.holds(job)}

    def results(
        self, worker: Worker, done: list[tuple[LeasedJob, Outcome]]
    ) -> dict[uuid.UUID, ModelJob | None]:
        at = self.during()
        fitting = self.fitting(done)
        self.seen["results of stale workers"] += len(done) - len(fitting)
        self.seen["results"] += len(fitting)
        return {
            lease.id: self.model.jobs[lease.id].finished(
                outcome, at=at, worker=worker.name
            )
            for lease, outcome in done
            if self.model.holds(lease)
        }

    @precondition(lambda self: any(w.held() for w in self.workers) and self.is_free(self.actors.heartbeat))  # fmt: skip
    @rule(data=st.data(), held=HELD)
    def extend(self, data: st.DataObject, held: bool) -> None:
        self.beat(one(data, [w for w in self.workers if w.held()]), held=held)

    def beat(self, worker: Worker, *, held: bool) -> None:
        mine = worker.held()

        def extends() -> leases.News:
            return leases.extend(self.actors.heartbeat.queue, mine, LENGTHS)

        news, pid = self.perform(self.actors.heartbeat, extends, held=held)
        assert news.lost == {job.key for job in mine if not self.model.holds(job)}
        assert news.cancelled == {
            job.key
            for job in mine
            if self.model.holds(job) and self.model.jobs[job.id].cancel_requested
        }
        now = self.during()
        locked = self.locked()
        changes = {
            job.id: self.model.jobs[job.id].extended(now + LEASES[job.type])
            for job in mine
            if self.model.holds(job) and job.id not in locked
        }
        self.settle(self.actors.heartbeat, changes, pid=pid)


def _claim(
    worker: Worker,
    *,
    types: tuple[str, ...],
    queues: tuple[str, ...],
    most: int,
    budget: float,
) -> Claim:
    return Claim(
        worker=worker.name,
        leases=LENGTHS,
        limits={(queue, level): most for queue in queues for level in Priority},
        costs={name: {KEPT: 0.25, GONE: 0.5}[name] for name in types},
        budget=budget,
    )


def _forget(worker: Worker, done: list[tuple[LeasedJob, Outcome]]) -> None:
    worker.done = [entry for entry in worker.done if entry not in done]
