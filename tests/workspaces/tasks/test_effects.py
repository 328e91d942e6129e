"""What each action leaves behind: the task's columns, its rows, and a line of its history."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.testing import run_due_jobs
from tests.workspaces.tasks.market import (
    HOUR,
    MINUTE,
    agent,
    contest,
    entry,
    held,
    history,
    last_event,
    now,
    pass_and_work,
    pass_time,
    publish,
    reviewing,
    unwatched,
)
from workspaces.tasks import actions, effects, machine
from workspaces.tasks.actors import WORKER
from workspaces.tasks.models import Task
from workspaces.tasks.states import Action, Reason, Status

pytestmark = pytest.mark.django_db


def noted(task: Task) -> tuple[Any, ...]:
    """The last line of its history, without its time."""
    event = last_event(task)
    return event.action, event.source, event.target, event.actor, event.data


def test_each_action_has_its_effect():
    assert set(effects.EFFECTS) == set(Action)


def test_published():
    task = publish("alice")
    assert noted(task) == ("publish", None, "open", "alice", {})
    assert now(task).open_until == last_event(task).created_at + 10 * HOUR
    assert unwatched(task) == set()


def test_taken():
    task = publish(checkpoint_every=2 * HOUR)
    assert actions.take(task.pk, by=agent("bob")).ok
    assert noted(task) == ("take", "open", "held", "bob", {})
    at, task = last_event(task).created_at, now(task)
    assert (str(task.holder), task.open_until) == ("bob", None)
    assert task.hold_until == at + 8 * HOUR
    assert task.checkpoint_due_at == at + 2 * HOUR
    assert task.updated_at == at
    assert unwatched(task) == set()


def test_a_checkpoint_is_kept_and_moves_the_next():
    task = held(checkpoint_every=2 * HOUR, final_miss=2)
    pass_and_work(2 * HOUR)
    pass_time(HOUR)
    assert now(task).misses == 1
    outcome = actions.checkpoint(task.pk, by=agent("bob"), note=" half of it ")
    row = task.checkpoints.get()
    assert (outcome.created_id, str(row.agent), row.note) == (
        row.pk,
        "bob",
        "half of it",
    )
    assert noted(task) == ("checkpoint", "held", "held", "bob", {"note": "half of it"})
    assert now(task).misses == 0
    assert now(task).checkpoint_due_at == row.created_at + 2 * HOUR
    assert unwatched(task) == set()


def test_a_checkpoint_counts_also_where_none_is_due():
    task = held()
    assert actions.checkpoint(task.pk, by=agent("bob")).ok
    assert now(task).checkpoint_due_at is None


def test_a_holder_is_warned_of_a_checkpoint_once():
    task = held(checkpoint_every=2 * HOUR)
    pass_and_work(2 * HOUR - MINUTE)
    assert noted(task) == ("checkpoint_warn", "held", "held", "worker", {})
    assert now(task).checkpoint_warn_at is None
    assert not machine.apply(task.pk, Action.CHECKPOINT_WARN, by=WORKER).ok


def test_missed_checkpoints_are_counted_in_a_row_and_the_final_one_costs_the_task():
    task = held(checkpoint_every=HOUR, final_miss=3, returns_allowed=1)
    pass_and_work(HOUR)
    assert noted(task)[4] == {"misses": 1}
    pass_time(HOUR / 2)
    assert actions.checkpoint(task.pk, by=agent("bob")).ok
    for n in (1, 2):
        pass_and_work(HOUR)
        assert noted(task)[4] == {"misses": n}
        assert now(task).status == Status.HELD
    pass_and_work(HOUR)
    assert noted(task) == (
        "checkpoint_miss",
        "held",
        "open",
        "worker",
        {"misses": 3, "returns": 1},
    )
    task = now(task)
    assert (task.holder, task.hold_until, task.checkpoint_due_at) == (None, None, None)
    actions.take(task.pk, by=agent("bob"))
    assert now(task).misses == 0


def test_the_last_return_closes_it():
    task = held(returns_allowed=0)
    pass_and_work(8 * HOUR)
    assert noted(task) == ("hold_timeout", "held", "closed", "worker", {"returns": 1})
    assert now(task).ended_at is not None
    assert unwatched(task) == set()


def test_a_final_miss_closes_it_where_no_return_is_left():
    task = held(checkpoint_every=HOUR, final_miss=1, returns_allowed=0)
    pass_and_work(HOUR)
    assert now(task).status == Status.CLOSED


@pytest.mark.parametrize("reason", ["", "too hard"])
def test_given_back_by_its_holder_counts_too(reason: str):
    task = held(returns_allowed=1)
    assert actions.give_back(task.pk, by=agent("bob"), reason=reason).ok
    said = {"reason": reason} if reason else {}
    assert noted(task) == ("give_back", "held", "open", "bob", {"returns": 1, **said})
    actions.take(task.pk, by=agent("bob"))
    assert actions.give_back(task.pk, by=agent("bob")).status == Status.CLOSED


def test_handed_in_it_waits_for_its_publisher():
    task = held(checklist=["tests", "docs"], checkpoint_every=HOUR)
    outcome = actions.submit(
        task.pk, by=agent("bob"), text=" it works ", reference="acw/sort", done=[2, 1]
    )
    row = task.submissions.get()
    assert outcome.created_id == row.pk
    assert (row.text, row.reference, row.done) == ("it works", "acw/sort", [1, 2])
    assert (row.decision, row.decided_at) == ("pending", None)
    assert noted(task) == (
        "submit",
        "held",
        "reviewing",
        "bob",
        {"submission_id": row.pk},
    )
    task = now(task)
    assert str(task.holder) == "bob"
    assert task.checkpoint_due_at is None
    assert task.review_until == row.created_at + 6 * HOUR
    assert unwatched(task) == set()


def test_accepted_with_a_reason():
    task = reviewing()
    assert actions.accept(task.pk, by=agent("alice"), reason="well done").ok
    row = entry(task, "bob")
    assert (row.decision, row.reason) == ("accepted", "well done")
    assert row.decided_at == last_event(task).created_at == now(task).ended_at
    assert noted(task) == (
        "accept",
        "reviewing",
        "accepted",
        "alice",
        {"reason": "well done"},
    )
    assert now(task).holder is None


def test_rejected_while_time_is_left_its_holder_goes_on():
    task = reviewing(checkpoint_every=HOUR)
    until = now(task).hold_until
    outcome = actions.reject(task.pk, by=agent("alice"), reason="no tests")
    assert outcome.status == Status.HELD
    assert (entry(task, "bob").decision, entry(task, "bob").reason) == (
        "rejected",
        "no tests",
    )
    at, task = last_event(task).created_at, now(task)
    assert (str(task.holder), task.hold_until) == ("bob", until)
    assert task.checkpoint_due_at == at + HOUR
    assert (task.review_until, task.review_warn_at) == (None, None)
    assert unwatched(task) == set()
    assert actions.submit(task.pk, by=agent("bob"), text="with tests").ok
    assert actions.accept(task.pk, by=agent("alice")).ok
    assert [row.decision for row in task.submissions.all()] == ["rejected", "accepted"]


def test_rejected_without_time_left_it_ends_and_can_be_reopened():
    task = reviewing(hold_for=HOUR)
    pass_and_work(HOUR)
    assert now(task).status == Status.REVIEWING
    outcome = actions.reject(task.pk, by=agent("alice"), reason="no tests")
    assert outcome.status == Status.REJECTED
    assert now(task).holder is None
    assert actions.reopen(task.pk, by=agent("alice")).status == Status.OPEN


def test_it_is_too_late_to_reject_when_silence_has_accepted():
    task = reviewing()
    pass_time(6 * HOUR)
    refused = actions.reject(task.pk, by=agent("alice"), reason="no tests")
    assert refused.code == Reason.TOO_LATE
    assert actions.accept(task.pk, by=agent("alice")).ok


def test_silence_accepts():
    task = reviewing()
    pass_and_work(6 * HOUR)
    assert noted(task) == (
        "review_auto_accept",
        "reviewing",
        "accepted",
        "worker",
        {},
    )
    assert entry(task, "bob").decision == "accepted"


def test_a_publisher_is_warned_of_a_review_once():
    task = reviewing()
    pass_and_work(5 * HOUR)
    assert noted(task) == ("review_warn", "reviewing", "reviewing", "worker", {})
    assert now(task).review_warn_at is None
    pass_and_work(HOUR / 2)
    assert history(task).count("review_warn") == 1


def test_a_warning_that_comes_too_late_leaves_no_deadline_unwatched():
    task = contest("bob")
    pass_time(10 * HOUR)
    run_due_jobs()
    # The worker is away for the whole of the review, which no judge ends.
    pass_and_work(7 * HOUR)
    task = now(task)
    assert task.status == Status.REVIEWING
    assert task.review_warn_at is None
    assert {action for action, _ in unwatched(task)} <= {"review_auto_accept"}


@pytest.mark.parametrize("make", [publish, held, reviewing])
@pytest.mark.parametrize("reason", ["", "not needed"])
def test_cancelled_from_wherever_it_is(make: Any, reason: str):
    task = now(make())
    source = task.status
    assert actions.cancel(task.pk, by=agent("alice"), reason=reason).ok
    event = last_event(task)
    assert (event.source, event.target) == (source, "cancelled")
    assert event.data.get("reason") == (reason or "the task was cancelled")
    task = now(task)
    assert (task.holder, task.ended_at) == (None, event.created_at)
    assert [row.decision for row in task.submissions.all()] in ([], ["rejected"])
    assert unwatched(task) == set()


def ended(status: Status) -> Task:
    task: Task
    if status == Status.EXPIRED:
        task = publish(returns_allowed=1)
        pass_and_work(10 * HOUR)
    elif status == Status.CLOSED:
        task = held(returns_allowed=0)
        actions.give_back(task.pk, by=agent("bob"))
    elif status == Status.CANCELLED:
        task = held()
        actions.cancel(task.pk, by=agent("alice"))
    elif status == Status.REJECTED:
        task = reviewing(hold_for=HOUR)
        pass_time(HOUR)
        actions.reject(task.pk, by=agent("alice"), reason="no tests")
    else:
        task = reviewing()
        actions.accept(task.pk, by=agent("alice"))
    assert now(task).status == status
    return task


@pytest.mark.parametrize("status", ["rejected", "expired", "closed", "cancelled"])
@pytest.mark.parametrize("open_for", [None, HOUR])
def test_reopened_from_each_end_it_begins_anew(status: str, open_for: Any):
    task = ended(Status(status))
    assert actions.reopen(task.pk, by=agent("alice"), open_for=open_for).ok
    assert noted(task) == ("reopen", status, "open", "alice", {})
    at, task = last_event(task).created_at, now(task)
    assert (task.returns, task.ended_at) == (0, None)
    assert task.open_until == at + (open_for or 10 * HOUR)
    assert unwatched(task) == set()
    assert actions.take(task.pk, by=agent("carol")).ok


def test_what_was_accepted_stays_so():
    task = ended(Status.ACCEPTED)
    refused = actions.reopen(task.pk, by=agent("alice"))
    assert refused.reason == (
        "reopen applies to a task that is rejected or expired or closed or cancelled, "
        "and this one is accepted"
    )


def test_a_contest_with_entries_closes_into_review_and_without_it_expires():
    entered, empty = contest("bob"), contest()
    pass_and_work(10 * HOUR)
    assert noted(entered) == ("contest_close", "open", "reviewing", "worker", {})
    assert noted(empty) == ("contest_close", "open", "expired", "worker", {})
    assert now(entered).review_until == last_event(entered).created_at + 6 * HOUR
    assert now(entered).open_until is not None
    assert now(empty).open_until is None


def test_a_contest_that_was_reopened_takes_new_entries_only():
    task = contest("bob")
    assert actions.cancel(task.pk, by=agent("alice")).ok
    assert actions.reopen(task.pk, by=agent("alice")).ok
    pass_and_work(10 * HOUR)
    assert now(task).status == Status.EXPIRED


def test_a_deadline_that_has_passed_decides_though_its_job_has_not_run():
    task = publish()
    pass_time(10 * HOUR)
    assert actions.take(task.pk, by=agent("bob")).code == Reason.TOO_LATE
    task = held(checkpoint_every=HOUR)
    pass_time(HOUR)
    assert actions.checkpoint(task.pk, by=agent("bob")).code == Reason.TOO_LATE
    pass_time(7 * HOUR)
    assert actions.submit(task.pk, by=agent("bob"), text="x").code == Reason.TOO_LATE
