from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from jobs.models import Job
from notify.exceptions import InvalidEvent
from notify.models import Notification
from tests.notify.factories import EndpointFactory
from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    contest,
    entry,
    held,
    history,
    live_jobs,
    now,
    offered,
    pass_and_work,
    pass_time,
    publish,
    reviewing,
    unwatched,
    worktree,
)
from workspaces.tasks import actions, agents, machine, notices
from workspaces.tasks.actors import WORKER
from workspaces.tasks.exceptions import InvalidTask, UnknownTask
from workspaces.tasks.models import Agent, Task, TaskEvent
from workspaces.tasks.states import Action, Reason, Status

pytestmark = pytest.mark.django_db


def test_a_task_goes_from_open_to_accepted():
    task = publish("alice")
    assert actions.take(task.pk, by=agent("bob")).as_dict() == {
        "ok": True,
        "task_id": task.pk,
        "action": "take",
        "status": "held",
    }
    assert actions.submit(task.pk, by=agent("bob"), reference="acw/sort").ok
    assert actions.accept(task.pk, by=agent("alice"), reason="well done").ok
    task = now(task)
    assert (task.status, task.holder) == (Status.ACCEPTED, None)
    assert entry(task, "bob").decision == "accepted"
    assert history(task) == ["publish", "take", "submit", "accept"]


def test_nobody_takes_it_in_time():
    task = publish()
    pass_and_work(10 * HOUR)
    assert now(task).status == Status.EXPIRED


def test_the_holders_time_runs_out_and_the_task_is_open_again():
    task = held(returns_allowed=1)
    assert unwatched(task) == set()
    pass_and_work(8 * HOUR)
    task = now(task)
    assert (task.status, task.holder, task.returns) == (Status.OPEN, None, 1)
    assert unwatched(task) == set()
    actions.take(task.pk, by=agent("carol"))
    pass_and_work(8 * HOUR)
    assert now(task).status == Status.CLOSED


def test_a_direct_task_is_accepted_on_silence():
    task = reviewing()
    done = pass_and_work(6 * HOUR)
    assert now(task).status == Status.ACCEPTED
    assert {job.status for job in done} == {"completed"}


def test_a_contest_without_a_judge_decides_nothing():
    task = contest("bob", "carol")
    pass_and_work(10 * HOUR)
    assert now(task).status == Status.REVIEWING
    (failed,) = (
        job for job in pass_and_work(6 * HOUR) if job.type == "review_auto_accept"
    )
    assert "needs a judge" in failed.last_error
    assert now(task).status == Status.REVIEWING
    chosen = entry(task, "carol").pk
    assert actions.pick_winner(task.pk, by=agent("alice"), submission=chosen).ok
    assert now(task).status == Status.ACCEPTED
    pass_and_work(HOUR)
    assert Job.objects.get(pk=failed.pk).status == "completed"


def everything() -> dict[str, list[Any]]:
    """Every row that an action may write, as it is now."""
    rows = {
        model.__name__: list(model._default_manager.order_by("pk").values())
        for model in (Task, TaskEvent, Notification, Job)
    }
    with connection.cursor() as cursor:
        for table in ("submissions", "checkpoints", "transfers"):
            cursor.execute(f"SELECT * FROM task_{table} ORDER BY id")
            rows[table] = cursor.fetchall()
        cursor.execute("SELECT * FROM workspace_worktrees ORDER BY id")
        rows["worktrees"] = cursor.fetchall()
    return rows


def test_an_unknown_task_is_an_error_and_no_outcome():
    for call in (
        lambda: machine.apply(12345, Action.TAKE, by=agent("bob")),
        lambda: machine.apply(2**70, Action.HOLD_TIMEOUT, by=WORKER),
        lambda: machine.watch(12345),
    ):
        with pytest.raises(UnknownTask, match="there is no task "):
            call()


def test_what_is_refused_changes_nothing():
    task = held()
    other = worktree("carol")
    before = everything()
    for outcome in (
        actions.take(task.pk, by=agent("carol"), worktree=other),
        actions.submit(task.pk, by=agent("carol"), text="mine"),
        actions.use_worktree(task.pk, by=agent("bob"), worktree=other),
        actions.cancel(task.pk, by=agent("bob")),
        machine.apply(task.pk, Action.HOLD_TIMEOUT, by=WORKER),
        machine.apply(task.pk, Action.OPEN_EXPIRE, by=WORKER),
    ):
        assert not outcome.ok
        assert outcome.reason
        assert outcome.code is not None
        assert (outcome.status, outcome.created_id) == (Status.HELD, None)
    assert everything() == before


def test_a_job_that_comes_early_is_told_from_when_it_may():
    task = held()
    outcome = machine.apply(task.pk, Action.HOLD_TIMEOUT, by=WORKER)
    assert (outcome.code, outcome.due) == (Reason.NOT_DUE, now(task).hold_until)
    assert machine.apply(task.pk, Action.OPEN_EXPIRE, by=WORKER).due is None


@pytest.mark.parametrize("action", [a for a in Action if a is not Action.PUBLISH])
def test_the_worker_does_nothing_that_is_for_people(action: Action):
    task = held(checkpoint_every=HOUR)
    outcome = machine.apply(task.pk, action, by=WORKER)
    assert not outcome.ok
    assert history(task) == ["publish", "take"]


def test_where_telling_fails_nothing_is_written(monkeypatch: pytest.MonkeyPatch):
    task = held()
    row = worktree("bob")
    actions.use_worktree(task.pk, by=agent("bob"), worktree=row)

    def fail(_: object) -> None:
        raise InvalidEvent("data: too large")

    monkeypatch.setattr(notices, "dispatch", fail)
    pass_time(HOUR)
    before = everything()
    with pytest.raises(InvalidEvent):
        actions.submit(task.pk, by=agent("bob"), text="x")
    with pytest.raises(InvalidEvent):
        actions.give_back(task.pk, by=agent("bob"))
    with pytest.raises(InvalidEvent):
        publish()
    assert everything() == before


def test_what_a_caller_takes_back_leaves_nothing(settings: Settings):
    settings.NOTIFY_WEBHOOK_ENABLED = True
    EndpointFactory(topics=["task.submitted"])
    task = held(checkpoint_every=HOUR)
    before = everything()
    with transaction.atomic():
        assert actions.checkpoint(task.pk, by=agent("bob")).ok
        assert actions.submit(task.pk, by=agent("bob"), text="x").ok
        assert Job.objects.filter(type="webhook.deliver").exists()
        transaction.set_rollback(True)
    assert everything() == before


def test_a_refusal_leaves_the_callers_transaction_as_it_was():
    task = publish()
    with transaction.atomic():
        assert actions.take(task.pk, by=agent("bob")).ok
        assert not actions.take(task.pk, by=agent("carol")).ok
        assert actions.submit(task.pk, by=agent("bob"), text="x").ok
    assert history(task) == ["publish", "take", "submit"]


def test_a_publisher_who_may_not_act_publishes_nothing():
    alice = agent("alice").agent
    assert alice is not None
    agents.switch(alice, enabled=False)
    with pytest.raises(InvalidTask, match="publisher: alice is disabled"):
        publish("alice")
    assert not Task.objects.exists()


def test_watch_gives_the_deadlines_their_jobs_back():
    task = offered(checkpoint_every=HOUR)
    Job.objects.all().delete()
    machine.watch(task.pk)
    assert len(live_jobs(task)) == 4
    assert unwatched(task) == set()


def test_what_is_done_is_logged_and_what_is_not(
    caplog: pytest.LogCaptureFixture,
    django_capture_on_commit_callbacks: Any,
):
    caplog.set_level(logging.INFO, "workspaces.tasks")
    with django_capture_on_commit_callbacks(execute=True):
        task = publish()
        actions.take(task.pk, by=agent("bob"))
        assert [r for r in caplog.records if r.name == machine.__name__] == []
    actions.take(task.pk, by=agent("carol"))
    records = [r for r in caplog.records if r.name == machine.__name__]
    said = [(r.getMessage(), vars(r)["action"], vars(r)["by"]) for r in records]
    assert said == [
        ("task.applied", "publish", "alice"),
        ("task.applied", "take", "bob"),
        ("task.refused", "take", "carol"),
    ]
    assert {vars(record)["task_id"] for record in records} == {task.pk}
    assert vars(records[1])["status"] == "held"
    assert "this one is held" in vars(records[2])["reason"]


def test_an_agent_that_is_disabled_meanwhile_does_nothing_more():
    task, kept = publish(), agent("bob")
    assert kept.agent is not None
    Agent.objects.filter(pk=kept.agent.pk).update(enabled=False)
    assert kept.agent.may_act
    outcome = actions.take(task.pk, by=kept)
    assert (outcome.code, outcome.reason) == ("agent_refused", "bob is disabled")


def test_nothing_is_offered_to_an_agent_that_is_disabled_meanwhile():
    task, kept = held(), agent("carol").agent
    assert kept is not None
    Agent.objects.filter(pk=kept.pk).update(enabled=False)
    outcome = actions.offer_transfer(task.pk, by=agent("bob"), to=kept)
    assert (outcome.code, outcome.reason) == ("agent_refused", "carol is disabled")


def test_an_agent_that_is_gone_meanwhile_does_nothing_more():
    task, kept = publish(), agent("bob")
    assert kept.agent is not None
    assert kept.agent.user is not None
    type(kept.agent.user).objects.filter(pk=kept.agent.user.pk).delete()
    outcome = actions.take(task.pk, by=kept)
    assert outcome.code == "agent_refused"
    assert now(task).status == Status.OPEN


def test_the_history_is_a_chain_that_ends_where_the_task_is():
    task = reviewing(returns_allowed=1)
    actions.reject(task.pk, by=agent("alice"), reason="no tests")
    pass_and_work(8 * HOUR)
    events = list(task.events.order_by("pk"))
    assert events[0].source is None
    for before, after in pairwise(events):
        assert after.source == before.target
        assert before.created_at <= after.created_at
    assert events[-1].target == now(task).status == Status.OPEN


def queries_of(task: Task, action: Action) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert machine.apply(task.pk, action, by=WORKER).ok
    return len(queries)


def test_an_action_costs_the_same_however_many_tasks_there_are():
    first, last = held(), held()
    pass_time(8 * HOUR)
    alone = queries_of(first, Action.HOLD_TIMEOUT)
    for n in range(10):
        held(f"agent{n}")
        reviewing(f"agent{n}")
    assert queries_of(last, Action.HOLD_TIMEOUT) == alone
    # Patience, lock, agents, transfer, time, task, history, notifications, job; the rest are two savepoints.
    assert alone <= 13


def test_an_outcome_costs_the_same_however_many_have_entered():
    def queries_of_cancel(entrants: int) -> int:
        names = [f"{kind}{n}" for n in range(entrants) for kind in ("service:bot", "u")]
        task = contest(*names)
        alice = agent("alice")
        with CaptureQueriesContext(connection) as queries:
            assert actions.cancel(task.pk, by=alice).ok
        return len(queries)

    assert queries_of_cancel(4) == queries_of_cancel(1)


def test_the_task_says_when_it_was_changed():
    task = publish()
    actions.take(task.pk, by=agent("bob"))
    event = task.events.latest("pk")
    assert now(task).updated_at == event.created_at
    assert now(task).created_at < event.created_at
