"""Those who enqueue, and those who act on jobs by hand."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from jobs import actions
from jobs.action_result import Result
from jobs.enqueue import NewJob, enqueue, enqueue_many
from jobs.models import Priority, Status
from tests.jobs.modelled.stage import GONE, HELD, HOUR, KEPT, MOSTLY, Stage, some
from tests.jobs.modelled.table import ModelJob, Span, exactly

QUEUES = "default", "other"
KEYS = "a", "b"
AGAIN: dict[Callable[..., Result], set[str]] = {
    actions.retry: {Status.DEAD, Status.CANCELLED},
    actions.repeat: {Status.DEAD, Status.COMPLETED},
}
"""The verbs that make what has ended pending again, and what they take."""


NEW_JOBS: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.builds(
        dict,
        type=st.sampled_from([KEPT, GONE]),
        queue=st.sampled_from(QUEUES),
        priority=st.sampled_from(Priority),
        unique_key=st.sampled_from([None, None, None, None, *KEYS]),
        max_attempts=st.integers(1, 3),
        hours=st.sampled_from([None, None, None, -1, 3]),
    ),
    min_size=1,
    max_size=4,
)


class People(Stage):
    """A producer and an operator."""

    @precondition(lambda self: self.is_free(self.actors.producer))
    @rule(wanted=NEW_JOBS, held=HELD, commits=st.booleans())
    def enqueue(self, wanted: list[dict[str, Any]], held: bool, commits: bool) -> None:
        self.put(wanted, held=held, commits=commits)

    @initialize(wanted=NEW_JOBS)
    def begin_with(self, wanted: list[dict[str, Any]]) -> None:
        self.put(wanted, held=False, commits=True)

    def put(self, wanted: list[dict[str, Any]], *, held: bool, commits: bool) -> None:
        hours = [fields.pop("hours") for fields in wanted]
        times = [None if h is None else self.model.now + h * HOUR for h in hours]
        new = [
            {**fields, "run_at": time}
            for fields, time in zip(wanted, times, strict=True)
        ]

        def enqueues() -> list[uuid.UUID]:
            if len(new) == 1:
                return [enqueue(**new[0]).id]
            return enqueue_many([NewJob(**fields) for fields in new])

        keys = {fields["unique_key"] for fields in new} - {None}
        ids, pid = self.perform(
            self.actors.producer, enqueues, held=held, commits=commits, keys=keys
        )
        at = self.during()
        changes: dict[uuid.UUID, ModelJob] = {}
        taken = {key: self.model.holder_of(key) for key in keys}
        for job_id, fields in zip(ids, new, strict=True):
            time = fields.pop("run_at")
            key = fields["unique_key"]
            if taken.get(key) is not None:
                assert job_id == taken[key]
                self.seen["key taken"] += 1
                continue
            assert job_id not in {*self.ever, *changes}
            taken[key] = job_id if key else None
            run_at = at if time is None else exactly(time)
            changes[job_id] = ModelJob(id=job_id, run_at=run_at, **fields)
        self.ever += changes
        self.settle(self.actors.producer, changes, pid=pid)

    @precondition(lambda self: self.ever and self.is_free(self.actors.operator))
    @rule(
        verb=st.sampled_from(
            [actions.retry, actions.repeat, actions.cancel, actions.run_now]
        ),
        data=st.data(),
        held=HELD,
        commits=st.booleans(),
    )
    def operate(
        self,
        verb: Callable[..., Result],
        data: st.DataObject,
        held: bool,
        commits: bool,
    ) -> None:
        # Of those that it can change there are few among all that ever were.
        able = self.candidates(verb, self.ever)
        fitting = [job_id for job_id in self.ever if job_id in able]
        mostly: bool = data.draw(MOSTLY)
        choice = fitting if fitting and mostly else self.ever
        ids = [choice[number] for number in data.draw(some(len(choice)))]
        self.act(verb, ids, held=held, commits=commits)

    def act(
        self,
        verb: Callable[..., Result],
        ids: list[uuid.UUID],
        *,
        held: bool,
        commits: bool,
    ) -> None:
        before = self.allowed(verb, ids)
        touches = self.candidates(verb, ids)
        keys = set[str | None]()
        if verb in AGAIN:
            keys = {self.model.jobs[job_id].unique_key for job_id in touches} - {None}
        result, pid = self.perform(
            self.actors.operator,
            partial_named(verb, ids, actor="alice"),
            held=held,
            commits=commits,
            touches=touches,
            keys=keys,
        )
        at, after = self.during(), self.allowed(verb, ids)
        locks = self.candidates(verb, ids)
        done = _done(result)
        # Where another has ended meanwhile, either may have been seen.
        assert before & after <= done <= before | after
        self.seen[verb.__name__] += len(done)
        changes = {
            job_id: _operated(verb, self.model.jobs[job_id], at) for job_id in done
        }
        retried = done if verb in AGAIN else set[uuid.UUID]()
        self.settle(
            self.actors.operator,
            changes,
            pid=pid,
            locks=locks,
            committed=lambda: self.retried.update(retried),
        )

    def candidates(
        self, verb: Callable[..., Result], ids: list[uuid.UUID]
    ) -> set[uuid.UUID]:
        """The jobs that the verb looks at under their locks."""
        jobs = [self.model.jobs[job_id] for job_id in ids if job_id in self.model.jobs]
        if verb in AGAIN:
            return {job.id for job in jobs if job.status in AGAIN[verb]}
        if verb is actions.cancel:
            return {job.id for job in jobs if job.live()}
        now = self.model.now
        return {
            job.id for job in jobs if job.status == Status.PENDING and not job.due(now)
        }

    def allowed(
        self, verb: Callable[..., Result], ids: list[uuid.UUID]
    ) -> set[uuid.UUID]:
        """The jobs that the verb has to change."""
        jobs = [self.model.jobs[job_id] for job_id in self.candidates(verb, ids)]
        if verb is actions.cancel:
            return {job.id for job in jobs if not job.cancel_requested}
        if verb is actions.run_now:
            return {job.id for job in jobs}
        found, taken = set(), set[str]()
        for job in sorted(jobs, key=lambda job: job.id):
            key = job.unique_key
            if key is None or (key not in taken and not self.model.holder_of(key)):
                found.add(job.id)
                taken.add(key or "")
        return found


def partial_named(verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    call = partial(verb, *args, **kwargs)
    call.__name__ = verb.__name__  # type: ignore[attr-defined]
    return call


def _done(result: Result) -> set[Any]:
    return {*result.done, *(each.target for each in result.asked if not each.since)}


def _operated(verb: Callable[..., Result], job: ModelJob, at: Span) -> ModelJob:
    if verb in AGAIN:
        return job.retried(at)
    return job.cancelled(at) if verb is actions.cancel else job.made_due(at)
