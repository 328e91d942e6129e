from __future__ import annotations

import pytest
from django.db.models import F

from tests.workspaces.tasks.market import (
    HOUR,
    MINUTE,
    agent,
    contest,
    entry,
    in_review,
    last_event,
    now,
    pass_and_work,
    pass_time,
    reviewing,
)
from workspaces.tasks import actions, entries, machine
from workspaces.tasks.actors import WORKER
from workspaces.tasks.change import Details
from workspaces.tasks.models import Submission, Task
from workspaces.tasks.states import Action, Reason, Status

pytestmark = pytest.mark.django_db


def decisions(task: Task) -> dict[str, str]:
    rows = task.submissions.values_list("text", "decision")
    return dict(rows)


def test_a_newer_entry_takes_the_place_of_the_older_one():
    task = contest("bob", "carol")
    outcome = actions.submit(task.pk, by=agent("bob"), text="better")
    assert outcome.created_id == entry(task, "bob").pk
    assert decisions(task) == {
        "by bob": "superseded",
        "by carol": "pending",
        "better": "pending",
    }
    assert [row.text for row in entries.pending(task)] == ["by carol", "better"]


def test_a_publisher_may_not_enter_their_own_contest():
    task = contest()
    refused = actions.submit(task.pk, by=agent("alice"), text="mine")
    assert refused.code == Reason.NOT_YOURS
    assert not Submission.objects.exists()


def test_an_entry_that_comes_too_late_is_refused_though_the_contest_is_open_still():
    task = contest("bob")
    pass_time(10 * HOUR)
    refused = actions.submit(task.pk, by=agent("bob"), text="better")
    assert (refused.code, refused.status) == (Reason.TOO_LATE, Status.OPEN)
    assert entry(task, "bob").text == "by bob"


def test_the_winner_is_accepted_and_the_others_are_told_why_not():
    task = in_review("bob", "carol", "dave")
    chosen = entry(task, "carol")
    assert actions.pick_winner(
        task.pk, by=agent("alice"), submission=chosen.pk, reason="the shortest"
    ).ok
    assert now(task).status == Status.ACCEPTED
    assert {(row.text, row.decision, row.reason) for row in task.submissions.all()} == {
        ("by bob", "rejected", "another entry was chosen"),
        ("by carol", "accepted", "the shortest"),
        ("by dave", "rejected", "another entry was chosen"),
    }
    assert last_event(task).data == {
        "winner": "carol",
        "submission_id": chosen.pk,
        "reason": "the shortest",
    }


def test_the_winner_may_be_picked_when_the_time_to_review_is_over():
    task = in_review("bob")
    pass_time(7 * HOUR)
    chosen = entry(task, "bob").pk
    assert actions.pick_winner(task.pk, by=agent("alice"), submission=chosen).ok
    assert last_event(task).data == {"winner": "bob", "submission_id": chosen}


def test_only_an_undecided_entry_of_this_contest_can_win():
    other = in_review("bob")
    foreign = entry(other, "bob").pk
    task = contest("carol")
    superseded = entry(task, "carol").pk
    actions.submit(task.pk, by=agent("carol"), text="better")
    pass_and_work(10 * HOUR)
    for wrong in (foreign, superseded, 0, -1, 2**70):
        refused = actions.pick_winner(task.pk, by=agent("alice"), submission=wrong)
        assert refused.code == Reason.NO_SUCH_SUBMISSION
        assert refused.reason == (
            f"submission {wrong} is no undecided entry of {now(task)} that came in time"
        )
    assert now(task).status == Status.REVIEWING
    assert decisions(task) == {"by carol": "superseded", "better": "pending"}


def test_an_entry_that_came_when_the_contest_was_over_cannot_win():
    task = in_review("bob")
    late = entry(task, "bob")
    for at in (F("open_until"), F("open_until") + MINUTE):
        (until,) = Task.objects.filter(pk=task.pk).values_list(at, flat=True)
        Submission.objects.filter(pk=late.pk).update(created_at=until)
        refused = actions.pick_winner(task.pk, by=agent("alice"), submission=late.pk)
        assert refused.code == Reason.NO_SUCH_SUBMISSION
    assert now(task).status == Status.REVIEWING


def test_a_contest_whose_end_was_taken_away_by_hand_can_be_decided():
    task = in_review("bob")
    Task.objects.filter(pk=task.pk).update(open_until=None)
    chosen = entry(task, "bob").pk
    assert actions.pick_winner(task.pk, by=agent("alice"), submission=chosen).ok


def test_a_rejected_contest_rejects_every_entry_at_any_time():
    task = in_review("bob", "carol")
    pass_time(7 * HOUR)
    assert actions.reject(task.pk, by=agent("alice"), reason="none works").ok
    assert now(task).status == Status.REJECTED
    assert decisions(task) == {"by bob": "rejected", "by carol": "rejected"}
    assert last_event(task).data == {"reason": "none works"}


def test_what_was_decided_is_not_decided_again():
    task = reviewing()
    actions.reject(task.pk, by=agent("alice"), reason="no tests")
    first = entry(task, "bob")
    actions.submit(task.pk, by=agent("bob"), text="again")
    actions.cancel(task.pk, by=agent("alice"))
    first_now = Submission.objects.get(pk=first.pk)
    assert (first_now.reason, first_now.decided_at) == ("no tests", first.decided_at)
    assert entry(task, "bob").reason == "the task was cancelled"


def test_an_accepted_entry_without_a_reason_has_none():
    task = reviewing()
    assert actions.accept(task.pk, by=agent("alice")).ok
    assert entry(task, "bob").reason == ""
    assert last_event(task).data == {}


def test_the_judges_choice_is_applied_as_the_publishers_would_be():
    task = in_review("bob", "carol")
    pass_time(6 * HOUR)
    chosen = entry(task, "bob").pk
    verdict = Details(submission=chosen, reason="passes the tests")
    assert machine.apply(
        task.pk, Action.REVIEW_AUTO_ACCEPT, by=WORKER, details=verdict
    ).ok
    assert decisions(task) == {"by bob": "accepted", "by carol": "rejected"}
    event = last_event(task)
    assert (event.actor, event.data["winner"]) == ("worker", "bob")
    assert event.data["reason"] == "passes the tests"


def test_without_a_choice_a_contest_is_not_decided():
    task = in_review("bob")
    pass_time(6 * HOUR)
    for action, by in (
        (Action.REVIEW_AUTO_ACCEPT, WORKER),
        (Action.PICK_WINNER, agent("alice")),
    ):
        refused = machine.apply(task.pk, action, by=by)
        assert (refused.code, refused.reason) == (
            Reason.NO_SUCH_SUBMISSION,
            "no winner was named",
        )
    assert decisions(task) == {"by bob": "pending"}


def test_what_is_rejected_without_a_word_has_no_reason_in_its_history():
    task = reviewing()
    assert machine.apply(task.pk, Action.REJECT, by=agent("alice")).ok
    assert last_event(task).data == {}
    assert entry(task, "bob").reason == ""
