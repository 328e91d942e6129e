"""What the steps stand on: the cast, time that stands still within a step, jobs run one by one, and the comparison."""

from __future__ import annotations

import datetime as dt
import sys
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

from django.conf import settings
from django.db import transaction
from hypothesis import note
from hypothesis.stateful import RuleBasedStateMachine, invariant

from jobs.connection import TransactionConnection
from jobs.execution import Execution
from jobs.finisher import write
from jobs.handler_connections import HandlerConnections
from jobs.selection import Queues
from jobs.testing import _claim
from tests.workspaces.tasks import market
from tests.workspaces.tasks.modelled import judges
from tests.workspaces.tasks.modelled.cast import Cast
from tests.workspaces.tasks.modelled.expected import Expected
from tests.workspaces.tasks.modelled.looking import (
    JobRow,
    Onlooker,
    Tables,
    rows,
    servers_time,
)
from tests.workspaces.tasks.modelled.world import WORKER, Hold, No, World

ATTEMPTS = 5
AUTO_ACCEPT = "review_auto_accept"
_MOMENT = dt.timedelta(microseconds=1)
_TICK = dt.timedelta(milliseconds=1)
_MINUTE = dt.timedelta(minutes=1)
_SLACK = dt.timedelta(minutes=5)
"""More than a sequence takes: a job that waits anew waits by the server's clock, which goes on meanwhile."""

_NEW_JOB = """
INSERT INTO jobs (id, type, ref_id, payload, max_attempts) SELECT gen_random_uuid(), type, ref_id, CASE WHEN %s THEN payload ELSE '{}' END, 5
FROM jobs WHERE id = %s RETURNING id
"""
_AT = ["at a deadline", "just before one", "just after one"]
_ABOUT = [*_AT, "a minute before one", "a minute after one"]
# Most of what people do comes in time, or nothing would come of it.
JUMPS = [None] * 16 + [*_AT, "20 minutes", "3 hours"]
WORKERS_JUMPS = [None] * 6 + [*_ABOUT, *_ABOUT, "20 minutes", "3 hours", "100 hours"]
_NEAR = {
    "at a deadline": 0 * _MOMENT,
    "just before one": -_MOMENT,
    "just after one": _MOMENT,
    "a minute before one": -_MINUTE,
    "a minute after one": _MINUTE,
}
_FAR = {
    "20 minutes": 20 * _MINUTE,
    "3 hours": 180 * _MINUTE,
    "100 hours": 6000 * _MINUTE,
}


class Stopped:
    """The clock that the tasks go by: it goes on from step to step, the same in each run, until nobody looks at it any more."""

    def __init__(self) -> None:
        self.at: dt.datetime | None = None

    def now(self) -> dt.datetime:
        return self.at if self.at is not None else servers_time()


class Stage(RuleBasedStateMachine):
    """Each sequence is played in a savepoint. The model's times are the server's plus what has been passed over."""

    seen: Counter[str] = Counter()

    def __init__(self, cast: Cast, clock: Stopped) -> None:
        super().__init__()
        self.seen["sequences"] += 1
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()
        self.cast, self.clock = cast, clock
        self.world = World(
            owners=dict(cast.owners),
            admins=set(cast.admins),
            worktrees={name: Hold() for name in cast.worktrees},
        )
        self.onlooker = Onlooker(cast.names)
        self.at = self.clock.at = servers_time()
        self.judge = "none"
        self.plug(self.judge)
        settings.NOTIFY_WEBHOOK_ENABLED = True
        self.checked: Counter[int] = Counter()

    def teardown(self) -> None:
        self.clock.at = None
        try:
            if sys.exc_info()[0] is None:
                self.everything_comes_to_an_end()
        finally:
            transaction.set_rollback(True)
            self.savepoint.__exit__(None, None, None)

    def everything_comes_to_an_end(self) -> None:
        raise NotImplementedError

    def plug(self, judge: str) -> None:
        self.judge = judge
        settings.TASKS_CONTEST_JUDGE = judges.PATHS[judge]

    # Time.

    def begin(self, dice: Random, jump: str | None) -> None:
        """A step begins, after time has passed as ``jump`` says; within it, time stands still."""
        assert self.clock.at
        at = self.clock.at + _TICK
        by = self._duration(dice, jump, at) if jump else dt.timedelta(0)
        if by > dt.timedelta(0):
            self.seen["jumps"] += 1
            market.pass_time(by)
            self.onlooker.passed += by
        self.clock.at = at
        self.at = at + self.onlooker.passed

    def _duration(self, dice: Random, jump: str, at: dt.datetime) -> dt.timedelta:
        if jump in _FAR:
            return _FAR[jump]
        watched = [time for task in self.world.tasks for _, time in task.live()]
        ahead = sorted(time for time in watched if time > at + self.onlooker.passed)
        if not ahead:
            return dt.timedelta(0)
        return dice.choice(ahead[:3]) - self.onlooker.passed + _NEAR[jump] - at

    # Jobs.

    def run(self, job: JobRow) -> None:
        """Have the worker execute this job, now, and no other."""
        rows(
            "UPDATE jobs SET queue = 'parked' WHERE status = 'pending' AND queue <> 'parked'"
        )
        rows(
            "UPDATE jobs SET queue = 'default', run_at = statement_timestamp() WHERE id = %s",
            job.id,
        )
        own = TransactionConnection()
        (leased,) = _claim(own, Queues(["default"]))
        outcome = Execution(leased).run(HandlerConnections())
        assert outcome is not None
        write(own, [(leased, outcome)], worker=WORKER)
        ((status,),) = rows("SELECT status FROM jobs WHERE id = %s", job.id)
        expected, what = self._runs(job)
        self.seen[f"{job.type}: {what}"] += 1
        note(f"{job.type} of task {job.task} runs: {what}")
        assert status == expected, f"{job.type} ({what}): {status}, not {expected}"

    def _runs(self, job: JobRow) -> tuple[str, str]:
        """What becomes of the job, and how it should be told, once the model has taken it in."""
        task = self.task(job.task)
        judged = self._to_be_judged(task) and job.type == AUTO_ACCEPT
        if judged and self.judge not in judges.DECIDING:
            dead = job.attempts + 1 >= ATTEMPTS
            return ("dead" if dead else "pending"), f"judge {self.judge}"
        given = {}
        if judged:
            chosen = 0 if self.judge == "first" else -1
            given["submission"] = task.pending()[chosen].id
        try:
            task.act(job.type, WORKER, self.at, **given)
        except No as no:
            waits = no.due is not None and no.due == job.deadline
            return ("pending" if waits else "completed"), no.code
        return "completed", "ok"

    def _to_be_judged(self, task: Expected) -> bool:
        over = task.review_until is not None and task.review_until <= self.at
        return task.template == "contest" and task.status == "reviewing" and over

    def run_copy(self, job: JobRow, *, whole: bool) -> None:
        """As if it had been enqueued once more by hand; ``whole`` is with what it says of its deadline."""
        ((job_id,),) = rows(_NEW_JOB, whole, job.id)
        # It is not the deadline's own job, and so never waits for it.
        self.run(job._replace(id=job_id, deadline=None, attempts=0))
        rows("DELETE FROM jobs WHERE id = %s", job_id)

    def task(self, task_id: int) -> Expected:
        return next(task for task in self.world.tasks if task.id == task_id)

    # The comparison.

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        self.seen["steps"] += 1
        tables, tasks = self.onlooker.look(), self.world.tasks
        _same(tables.tasks, {task.id: _row(task) for task in tasks})
        entries = [(task.id, entry) for task in tasks for entry in task.entries]
        _same(
            tables.entries,
            {
                entry.id: (
                    task,
                    entry.agent,
                    entry.decision,
                    entry.decision != "pending",
                )
                for task, entry in entries
            },
        )
        offers = [(task.id, offer) for task in tasks for offer in task.offers]
        _same(
            tables.offers,
            {
                offer.id: (task, offer.to, offer.status, offer.until)
                for task, offer in offers
            },
        )
        holds = self.world.worktrees.items()
        _same(tables.worktrees, {name: hold.by for name, hold in holds})
        self._new_events_are(tables)
        self._deadlines_are_watched()
        for task in tasks:
            self.seen[f"{task.template} {task.status}"] += 1

    def _new_events_are(self, tables: Tables) -> None:
        new = []
        for task in self.world.tasks:
            new += [(task.id, done) for done in task.done[self.checked[task.id] :]]
            self.checked[task.id] = len(task.done)
        _same(
            Counter(tables.events),
            Counter(
                (task, done.action, done.source, done.target, done.by, done.at)
                for task, done in new
            ),
        )
        topics = [
            (task, f"task.{topic}", names)
            for task, done in new
            for topic, names in done.tells
        ]
        _same(
            Counter(tables.told),
            Counter(
                (task, topic, name) for task, topic, names in topics for name in names
            ),
        )
        _same(
            Counter(tables.delivered),
            Counter((task, topic) for task, topic, _ in topics),
        )

    def _deadlines_are_watched(self) -> None:
        there = Counter[tuple[int, str, dt.datetime | None]]()
        for job in self.onlooker.jobs():
            deadline = job.task, job.type, job.deadline
            judged = self.task(job.task).template == "contest" and (
                job.type == AUTO_ACCEPT
            )
            if job.status == "dead":
                assert judged, job
                # It waits for an operator, as the task does for its publisher.
                there.setdefault(deadline, 1)
            elif job.live:
                there[deadline] += 1
                assert job.deadline is not None
                runs = job.run_at + self.onlooker.passed
                late = runs > max(job.deadline, self.at) + _SLACK
                assert judged or not late, f"{job} runs late"
        for task in self.world.tasks:
            for action, at in task.live():
                if action == "checkpoint_warn" and (task.due_at or at) <= self.at:
                    continue  # what it warned of has come, and is watched itself
                assert (task.id, action, at) in there, f"{action} at {at} is unwatched"
        assert set(there.values()) <= {1}, "a job is there twice"


def _same(found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> None:
    differ = {
        key: f"{found.get(key)}, not {expected.get(key)}"
        for key in {*found, *expected}
        if found.get(key) != expected.get(key)
    }
    assert not differ, differ


def _row(task: Expected) -> list[Any]:
    """As the onlooker sees it."""
    return [
        task.status,
        task.publisher,
        task.holder,
        task.misses,
        task.returns,
        task.worktree[0] if task.worktree else None,
        task.open_until,
        task.hold_until,
        task.warn_at,
        task.due_at,
        task.review_warn_at,
        task.review_until,
        task.ended_at,
    ]
