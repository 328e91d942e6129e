"""Verbs that meet on the same rows: each begins while the one before it has not committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from jobs import actions
from tests.jobs.modelled.losing import NOTED, Losing
from tests.jobs.modelled.people import People
from tests.jobs.modelled.stage import BEHAVIOURS, Worker, one
from tests.jobs.modelled.working import CLAIMS, Working

_VERBS = ["writes", "beats", "is reaped", "is cancelled"]


class Overlapping(People, Working, Losing):
    """By chance they meet too rarely."""

    @precondition(lambda self: self.free_workers() and self.some_due())
    @rule(
        data=st.data(),
        behaviour=BEHAVIOURS,
        verbs=st.lists(st.sampled_from(_VERBS), min_size=2, max_size=2, unique=True),
        commits=st.booleans(),
    )
    def overlap(
        self, data: st.DataObject, behaviour: str, verbs: list[str], commits: bool
    ) -> None:
        """A worker has run what was due; two things happen to it at once."""
        worker = one(data, self.free_workers())
        self.claim_and_execute(worker, behaviour)
        self.the_table_is_what_the_model_says()
        if "is reaped" in verbs:
            self.suspend(worker.name)
        for verb, held in zip(verbs, (True, False), strict=True):
            do = self.possible(worker, held=held, commits=commits).get(verb)
            if do is not None:
                do()
                self.the_table_is_what_the_model_says()
        for each in list(self.opened):
            self.close(each, commit=commits)

    @precondition(lambda self: len(self.free_workers()) > 1 and self.some_due())
    @rule(asks=CLAIMS, commits=st.booleans())
    def rush(self, asks: dict[str, Any], commits: bool) -> None:
        """Two workers want the same jobs at once."""
        for worker, held in zip(self.free_workers(), (True, False), strict=False):
            self.ask(worker, asks, heard=True, held=held)
            self.the_table_is_what_the_model_says()
        for each in list(self.opened):
            self.close(each, commit=commits)

    @precondition(lambda self: self.free_workers() and self.some_due())
    @rule(
        data=st.data(),
        asks=CLAIMS,
        begins=st.booleans(),
        noted=NOTED,
        commits=st.booleans(),
    )
    def die_early(
        self,
        data: st.DataObject,
        asks: dict[str, Any],
        begins: bool,
        noted: str,
        commits: bool,
    ) -> None:
        """A worker has begun at most the first of its batch when it is killed."""
        worker = one(data, self.free_workers())
        self.ask(worker, asks, heard=True, held=False)
        self.the_table_is_what_the_model_says()
        if begins and worker.waiting and worker.running is None:
            self.start_next(worker)
        self.lose(worker, noted, commits=commits)

    def possible(
        self, worker: Worker, *, held: bool, commits: bool
    ) -> dict[str, Callable[[], None]]:
        found: dict[str, Callable[[], None]] = {}
        if worker.done and self.is_free(worker.actor):
            found["writes"] = lambda: self.write_some(
                worker, list(worker.done), heard=True, held=held, commits=commits
            )
        if worker.held() and self.is_free(self.actors.heartbeat):
            found["beats"] = lambda: self.beat(worker, held=held)
        if self.is_free(self.actors.housekeeper):
            found["is reaped"] = lambda: self.take_back(held=held)
        ids = list(dict.fromkeys(job.id for job in worker.held()))
        if ids and self.is_free(self.actors.operator):
            found["is cancelled"] = lambda: self.act(
                actions.cancel, ids, held=held, commits=commits
            )
        return found
