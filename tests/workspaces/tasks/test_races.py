"""Two who act on the same task at the same moment, each with a connection of their own: in either order, and freely.

A third connection holds the task's row until both wait for it, in the order that is wanted; where a deadline is about to pass
it holds the row until it has. ``RACE_ROUNDS=200`` lets them race freely more often.
"""

from __future__ import annotations

import datetime as dt
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from pytest_django import Settings

from jobs.connection import QueueConnection
from jobs.models import Job
from jobs.testing import PATIENCE, wait_until
from notify.models import WebhookEndpoint
from tests.workspaces.tasks.market import (
    HOUR,
    MINUTE,
    agent,
    contest,
    held,
    live_jobs,
    now,
    pass_time,
    publish,
    reviewing,
    unwatched,
)
from workspaces.tasks import actions, clock, judging, machine, reconcile, topics
from workspaces.tasks.actors import WORKER, Actor
from workspaces.tasks.models import Submission, Task, Transfer
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Action, Reason, Status

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = int(os.environ.get("RACE_ROUNDS", "3"))
SOON = dt.timedelta(milliseconds=250)
_WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND wait_event IN ('transactionid', 'tuple')
"""

Act = Callable[[Task], Outcome]


@dataclass(frozen=True, kw_only=True)
class Race:
    """``deadline`` passes while both wait; then ``one`` is a person's act that is too late, ``other`` the worker's.

    ``both``: whether the second of a forced order may apply as well as the first.
    """

    task: Callable[[], Task]
    one: Act
    other: Act
    deadline: str | None = None
    both: bool = False


@pytest.fixture(autouse=True)
def told_to_webhooks(settings: Settings) -> None:
    """Each event becomes one job, which nobody works on."""
    settings.NOTIFY_WEBHOOK_ENABLED = True
    names = {getattr(topic, "name", "") for topic in vars(topics).values()}
    endpoint = WebhookEndpoint(
        name="mine",
        url="http://127.0.0.1:9/hook",
        topics=sorted(name for name in names if name.startswith("task.")),
    )
    endpoint.set_secret("a-secret-that-signs-nothing-0123456789")
    endpoint.save()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


def by(name: str, act: Callable[..., Outcome], **given: Any) -> Act:
    return lambda task: act(task.pk, by=ACTORS[name], **given)


ACTORS: dict[str, Actor] = {}


@pytest.fixture(autouse=True)
def actors() -> None:
    ACTORS.update({name: agent(name) for name in ("alice", "bob", "carol", "dave")})


def does(action: Action) -> Act:
    return lambda task: machine.apply(task.pk, action, by=WORKER)


def judged(task: Task) -> Outcome:
    return judging.auto_accept(task.pk)


def in_overdue_review() -> Task:
    task = reviewing()
    pass_time(7 * HOUR)
    return task


def closed_contest() -> Task:
    task = contest("bob", "carol")
    pass_time(11 * HOUR)
    assert machine.apply(task.pk, Action.CONTEST_CLOSE, by=WORKER).ok
    pass_time(7 * HOUR)
    return task


def offered() -> Task:
    task = held()
    to = ACTORS["carol"].agent
    assert to is not None
    assert actions.offer_transfer(task.pk, by=ACTORS["bob"], to=to).ok
    return task


def over_held() -> Task:
    task = held(returns_allowed=3)
    pass_time(9 * HOUR)
    return task


def offer(task: Task, to: str) -> Outcome:
    agent_ = ACTORS[to].agent
    assert agent_ is not None
    return actions.offer_transfer(task.pk, by=ACTORS["bob"], to=agent_)


def pick_carols(task: Task) -> Outcome:
    chosen = Submission.objects.filter(task=task).latest("pk").pk
    return actions.pick_winner(task.pk, by=ACTORS["alice"], submission=chosen)


RACES = {
    "two takers": Race(
        task=publish, one=by("bob", actions.take), other=by("carol", actions.take)
    ),
    "accepted, or accepted on silence": Race(
        task=in_overdue_review, one=by("alice", actions.accept), other=judged
    ),
    "accepted, or rejected": Race(
        task=reviewing,
        one=by("alice", actions.accept),
        other=by("alice", actions.reject, reason="not yet"),
    ),
    "picked, or judged": Race(task=closed_contest, one=pick_carols, other=judged),
    "two submissions of a holder": Race(
        task=held,
        one=by("bob", actions.submit, text="one"),
        other=by("bob", actions.submit, text="other"),
    ),
    "two entries of an agent": Race(
        task=lambda: publish(template="contest"),
        one=by("bob", actions.submit, text="one"),
        other=by("bob", actions.submit, text="other"),
        both=True,
    ),
    "taken, or cancelled": Race(
        task=publish,
        one=by("bob", actions.take),
        other=by("alice", actions.cancel),
        both=True,
    ),
    "two offers": Race(
        task=held,
        one=lambda task: offer(task, "carol"),
        other=lambda task: offer(task, "dave"),
    ),
    "two workers at one deadline": Race(
        task=over_held,
        one=does(Action.HOLD_TIMEOUT),
        other=does(Action.HOLD_TIMEOUT),
    ),
    "two deadlines that have passed": Race(
        task=lambda: _aged(held(checkpoint_every=HOUR, final_miss=1), 9 * HOUR),
        one=does(Action.HOLD_TIMEOUT),
        other=does(Action.CHECKPOINT_MISS),
    ),
    "a transfer is accepted as it expires": Race(
        task=offered,
        one=by("carol", actions.accept_transfer),
        other=does(Action.TRANSFER_EXPIRE),
        deadline="expires_at",
    ),
    "a task is taken as it expires": Race(
        task=publish,
        one=by("bob", actions.take),
        other=does(Action.OPEN_EXPIRE),
        deadline="open_until",
    ),
    "work is handed in as the time runs out": Race(
        task=lambda: held(returns_allowed=3),
        one=by("bob", actions.submit, text="done"),
        other=does(Action.HOLD_TIMEOUT),
        deadline="hold_until",
    ),
    "a checkpoint comes as it is missed": Race(
        task=lambda: held(checkpoint_every=HOUR, final_miss=1),
        one=by("bob", actions.checkpoint),
        other=does(Action.CHECKPOINT_MISS),
        deadline="checkpoint_due_at",
    ),
    "an entry comes as the contest closes": Race(
        task=lambda: contest("carol"),
        one=by("bob", actions.submit, text="done"),
        other=does(Action.CONTEST_CLOSE),
        deadline="open_until",
        # An entry that comes in time is one of those that are closed.
        both=True,
    ),
    "work is rejected as it is accepted on silence": Race(
        task=reviewing,
        one=by("alice", actions.reject, reason="not yet"),
        other=judged,
        deadline="review_until",
    ),
}


def _aged(task: Task, by_: dt.timedelta) -> Task:
    pass_time(by_)
    return task


@pytest.fixture(params=[*RACES.values()], ids=[*RACES])
def race(request: pytest.FixtureRequest, settings: Settings) -> Race:
    settings.TASKS_CONTEST_JUDGE = "tests.workspaces.tasks.modelled.judges.first"
    found: Race = request.param
    return found


@pytest.mark.parametrize("swapped", [False, True], ids=["in order", "the other way"])
def test_the_second_of_two_is_told_why_it_came_too_late(
    race: Race, threads: ThreadPoolExecutor, swapped: bool
):
    task = _prepared(race, SOON)
    before = _events(task)
    acts = [race.one, race.other]
    if swapped:
        acts.reverse()
    first, second = _in_this_order(threads, task, *acts, race=race)
    if race.deadline is not None:
        person, worker = (second, first) if swapped else (first, second)
        assert (person.ok, worker.ok) == (False, True), person
        expected = Reason.TOO_LATE if not swapped else person.code
        assert person.code == expected
    else:
        assert first.ok, first
        assert race.both or not second.ok
    _is_whole(task, before, [first, second])


def test_of_two_who_race_exactly_one_wins(race: Race, threads: ThreadPoolExecutor):
    for _ in range(ROUNDS):
        task = _prepared(race, dt.timedelta(milliseconds=random.uniform(0, 30)))  # noqa: S311
        before = _events(task)
        start = Barrier(2)
        passed = _passed(race, task)
        acts = [
            threads.submit(_closing, _at_once, act, task, start, passed)
            for act in (race.one, race.other)
        ]
        outcomes = [act.result(PATIENCE) for act in acts]
        won = [outcome for outcome in outcomes if outcome.ok]
        assert len(won) == 1 or (race.both and len(won) == 2), outcomes
        _is_whole(task, before, outcomes)


def test_what_is_mended_as_it_changes_is_watched_once(threads: ThreadPoolExecutor):
    for _ in range(ROUNDS):
        task = publish()
        Job.objects.filter(ref_id=str(task.pk)).delete()
        start = Barrier(2)

        def mend(task: Task = task, start: Barrier = start) -> Counter[str]:
            start.wait(PATIENCE)
            return reconcile.mend(task.pk)

        def take(task: Task = task, start: Barrier = start) -> Outcome:
            start.wait(PATIENCE)
            return actions.take(task.pk, by=ACTORS["bob"])

        acts = [threads.submit(_closing, mend), threads.submit(_closing, take)]
        mended, taken = [act.result(PATIENCE) for act in acts]
        assert taken.ok
        # Of what it was, or of what it is.
        assert mended["mended"] in (0, 1)
        assert unwatched(task) == set()
        assert len(live_jobs(task)) <= 2


def _prepared(race: Race, soon: dt.timedelta) -> Task:
    task = now(race.task())
    if race.deadline is not None:
        at = clock.now() + soon
        if race.deadline == "expires_at":
            Transfer.objects.filter(task=task).update(expires_at=at)
        else:
            Task.objects.filter(pk=task.pk).update(**{race.deadline: at})
            # As with every contest: nothing was entered after it closes.
            Submission.objects.filter(task=task).update(
                created_at=F("created_at") - MINUTE
            )
        machine.watch(task.pk)
    return task


def _in_this_order(
    threads: ThreadPoolExecutor, task: Task, *acts: Act, race: Race
) -> list[Outcome]:
    """What comes of them when they get the task's row one after the other, and only when a deadline has passed."""
    started: list[Future[Outcome]] = []
    with QueueConnection() as holder:
        holder.execute("BEGIN", [])
        holder.execute("SELECT FROM tasks WHERE id = %s FOR UPDATE", [task.pk])
        for act in acts:
            started.append(threads.submit(_closing, act, task))
            wait_until(partial(_waits, len(started)), what="it waits")
        wait_until(_passed(race, task), what="the deadline has passed")
        holder.execute("COMMIT", [])
        return [each.result(PATIENCE) for each in started]


def _passed(race: Race, task: Task) -> Callable[[], bool]:
    """Asks whether the deadline has passed that the task has now, if it has one."""
    if race.deadline is None:
        return lambda: True
    if race.deadline == "expires_at":
        until = Transfer.objects.get(task=task).expires_at
    else:
        until = getattr(now(task), race.deadline)
    return lambda: clock.now() > until


def _waits(expected: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_WAITING)
        count: int = cursor.fetchone()[0]
    return count == expected


def _at_once(
    act: Act, task: Task, start: Barrier, passed: Callable[[], bool]
) -> Outcome:
    start.wait(PATIENCE)
    # A job that comes early waits, and comes again. Where the other came in time, its deadline is another by then.
    outcomes: list[Outcome] = []

    def comes() -> bool:
        last = passed()
        outcomes.append(act(task))
        return last or outcomes[-1].code is not Reason.NOT_DUE

    wait_until(comes, what="it is due")
    return outcomes[-1]


def _closing(act: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return act(*arguments)
    finally:
        connection.close()


def _events(task: Task) -> int:
    return task.events.count()


def _is_whole(task: Task, before: int, outcomes: list[Outcome]) -> None:
    """All of what applied, nothing of what did not."""
    won = [outcome for outcome in outcomes if outcome.ok]
    assert all(bool(outcome.reason) is not outcome.ok for outcome in outcomes)
    events = list(task.events.order_by("pk"))
    assert Counter(event.action for event in events[before:]) == Counter(
        outcome.action.value for outcome in won
    )
    sources = [event.target for event in events[:-1]]
    assert [event.source for event in events[1:]] == sources
    after = now(task)
    assert after.status == events[-1].target
    assert unwatched(task) == set()
    jobs = Job.objects.filter(
        ref_id=str(task.pk), status="pending", unique_key__isnull=False
    )
    keys = Counter(jobs.values_list("unique_key", flat=True))
    assert set(keys.values()) <= {1}
    assert task.submissions.filter(decision="accepted").count() == (
        after.status == Status.ACCEPTED
    )
    assert Transfer.objects.filter(task=task, status="pending").count() <= (
        after.status == Status.HELD
    )
    _each_is_told_once(task, events)


SILENT = {("checkpoint", "held"), ("submit", "open"), ("use_worktree", "held")}


def _each_is_told_once(task: Task, events: list[Any]) -> None:
    told = [event for event in events if (event.action, event.target) not in SILENT]
    bodies = Job.objects.filter(type="webhook.deliver").values_list(
        "payload__body", flat=True
    )
    mine = [body for body in bodies if f'"task_id":{task.pk},' in body]
    assert len(mine) == len(told)
