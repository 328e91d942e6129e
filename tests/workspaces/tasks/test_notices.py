"""Who is told of what: each row of the table, and those who stand behind an agent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from jobs.models import Job
from notify.event import DATA_LIMIT
from notify.models import Notification
from tests.notify.factories import EndpointFactory
from tests.workspaces.factories import AdminFactory
from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    contest,
    entry,
    held,
    in_review,
    now,
    offer,
    pass_and_work,
    pass_time,
    publish,
    reviewing,
    told,
)
from workspaces.tasks import actions, agents, notices
from workspaces.tasks.actors import operating
from workspaces.tasks.models import Agent, Task

pytestmark = pytest.mark.django_db


def pick(task: Task, winner: str) -> None:
    chosen = entry(task, winner).pk
    assert actions.pick_winner(task.pk, by=agent("alice"), submission=chosen).ok


def last() -> Notification:
    return Notification.objects.latest("pk")


def test_a_task_that_is_published_concerns_nobody_yet():
    publish()
    assert told("task.published") == {}


def test_taken():
    held()
    assert told("task.taken") == {"alice": 1}
    assert last().title == "Task taken: Sort the lists"


def test_who_does_it_is_not_told():
    task = publish("alice")
    assert actions.take(task.pk, by=agent("alice")).ok
    assert told("task.taken") == {}


def test_a_checkpoint_is_warned_of_and_missed():
    task = held(checkpoint_every=2 * HOUR, final_miss=2, returns_allowed=1)
    pass_and_work(2 * HOUR - HOUR / 8)
    assert told("task.checkpoint_warning") == {"bob": 1}
    due = now(task).checkpoint_due_at
    assert (
        f"The next checkpoint is due until {due:%Y-%m-%d %H:%M:%S} UTC." in last().body
    )
    pass_and_work(HOUR / 8)
    assert told("task.checkpoint_missed") == {"alice": 1, "bob": 1}
    assert "Checkpoints missed in a row: 1; number 2 costs the task." in last().body
    pass_and_work(2 * HOUR)
    assert told("task.checkpoint_missed") == {"alice": 1, "bob": 1}
    assert told("task.returned") == {"alice": 1, "bob": 1}
    assert "Given back 1 times; it may be 1 times." in last().body


def test_given_back_and_closed():
    task = held(returns_allowed=1)
    pass_and_work(8 * HOUR)
    assert told("task.returned") == {"alice": 1, "bob": 1}
    actions.take(task.pk, by=agent("carol"))
    actions.give_back(task.pk, by=agent("carol"), reason="too hard")
    assert told("task.closed") == {"alice": 1}
    assert "Reason: too hard" in last().body
    assert last().data["reason"] == "too hard"


def test_nobody_took_it():
    publish()
    contest()
    pass_and_work(10 * HOUR)
    assert told("task.expired") == {"alice": 2}


def test_a_transfer_is_told_to_the_other_side():
    task = held()
    assert offer(task, note="you know the parser").ok
    assert told("task.transfer_offered") == {"carol": 1}
    assert "Transfer from bob to carol: offered." in last().body
    assert "Note: you know the parser" in last().body
    actions.decline_transfer(task.pk, by=agent("carol"))
    assert told("task.transfer_ended") == {"bob": 1}
    assert "Transfer from bob to carol: declined." in last().body
    offer(task)
    actions.withdraw_transfer(task.pk, by=agent("bob"))
    assert told("task.transfer_ended") == {"bob": 1, "carol": 1}
    offer(task)
    pass_and_work(HOUR)
    assert told("task.transfer_ended") == {"bob": 2, "carol": 2}
    offer(task)
    actions.accept_transfer(task.pk, by=agent("carol"))
    assert told("task.transfer_accepted") == {"alice": 1, "bob": 1}
    assert last().data["holder"] == "carol"


def test_submitted_and_warned_of_and_accepted_on_silence():
    reviewing()
    assert told("task.submitted") == {"alice": 1}
    pass_and_work(5 * HOUR)
    assert told("task.review_warning") == {"alice": 1}
    assert "It is to be decided until" in last().body
    pass_and_work(HOUR)
    assert told("task.review_warning") == {"alice": 1}
    assert told("task.accepted") == {"alice": 1, "bob": 1}


def test_a_warning_that_comes_too_late_is_not_sent():
    reviewing()
    pass_and_work(6 * HOUR)
    assert told("task.review_warning") == {}


def test_accepted_and_rejected_are_told_to_who_handed_in():
    task = reviewing()
    actions.reject(task.pk, by=agent("alice"), reason="no tests")
    assert told("task.rejected") == {"bob": 1}
    assert "Reason: no tests" in last().body
    actions.submit(task.pk, by=agent("bob"), text="with tests")
    actions.accept(task.pk, by=agent("alice"))
    assert told("task.accepted") == {"bob": 1}


def test_a_contests_outcome_is_told_to_all_who_entered():
    task = in_review("bob", "carol")
    assert told("task.submitted") == {"alice": 1}
    pick(task, "carol")
    assert told("task.accepted") == {"bob": 1, "carol": 1}
    assert f"Winner: carol, with submission {entry(task, 'carol').pk}." in last().body
    task = in_review("bob", "dave")
    actions.reject(task.pk, by=agent("alice"), reason="none works")
    assert told("task.rejected") == {"bob": 1, "dave": 1}


def test_cancelled():
    for make in (publish, held, reviewing):
        actions.cancel(make().pk, by=agent("alice"))
    assert told("task.cancelled") == {"bob": 2}
    actions.cancel(contest("carol", "dave").pk, by=agent("alice"))
    assert told("task.cancelled") == {"bob": 2, "carol": 1, "dave": 1}


@pytest.mark.parametrize(
    "silent",
    [
        lambda task: actions.checkpoint(task.pk, by=agent("bob"), note="half"),
        lambda task: actions.use_worktree(task.pk, by=agent("bob"), worktree=None),
    ],
    ids=["checkpoint", "use_worktree"],
)
def test_what_has_no_topic_is_told_to_nobody(silent: Any):
    task = held()
    before = Notification.objects.count()
    assert silent(task).ok
    assert Notification.objects.count() == before


def service(name: str, owner: str | None = None) -> Agent:
    user = User.objects.get_or_create(username=owner)[0] if owner else None
    return agents.add(name, owner=user)


def test_a_service_accounts_owner_is_told_for_it():
    service("bot", owner="olivia")
    AdminFactory(username="root")
    task = held("service:bot")
    pass_and_work(8 * HOUR)
    assert told("task.returned") == {"alice": 1, "olivia": 1}
    assert "worker did: hold_timeout. The task is open now." in last().body
    assert Notification.objects.filter(data__holder=None, data__task_id=task.pk)


def test_every_admin_is_told_for_what_has_no_owner():
    service("bot")
    AdminFactory(username="root")
    AdminFactory(username="toor")
    AdminFactory(username="gone", is_active=False)
    held("service:bot")
    pass_and_work(8 * HOUR)
    assert told("task.returned") == {"alice": 1, "root": 1, "toor": 1}


@pytest.mark.parametrize("who", ["bob", "olivia"])
def test_every_admin_is_told_for_who_can_no_longer_log_in(who: str):
    service("bot", owner="olivia")
    AdminFactory(username="root")
    held("bob" if who == "bob" else "service:bot")
    User.objects.filter(username=who).update(is_active=False)
    pass_and_work(8 * HOUR)
    assert told("task.returned") == {"alice": 1, "root": 1}


def test_somebody_who_is_concerned_twice_is_told_once():
    service("one", owner="olivia")
    service("two", owner="olivia")
    task = contest("service:one", "service:two", by="olivia")
    pass_time(10 * HOUR)
    actions.cancel(task.pk, by=agent("olivia"))
    assert told("task.cancelled") == {"olivia": 1}


def test_an_operator_is_named_as_such():
    task = reviewing()
    actions.accept(task.pk, by=operating(AdminFactory(username="root")))
    assert told("task.accepted") == {"alice": 1, "bob": 1}
    assert last().data["by"] == "root (operator)"
    assert "root (operator) did: accept. The task is accepted now." in last().body


def test_the_data_of_an_event_says_all_about_the_task():
    task = held()
    assert last().data == {
        "url": notices.about(now(task))["url"],
        "task_id": task.pk,
        "title": "Sort the lists",
        "template": "direct",
        "status": "held",
        "publisher": "alice",
        "holder": "bob",
        "by": "bob",
    }


def test_an_open_task_says_until_when():
    task = held(returns_allowed=1)
    actions.give_back(task.pk, by=agent("bob"))
    until = now(task).open_until
    assert f"It can be taken until {until:%Y-%m-%d %H:%M:%S} UTC." in last().body


def test_a_contest_says_when_it_closes(settings: Settings):
    settings.NOTIFY_WEBHOOK_ENABLED = True
    EndpointFactory(topics=["task.published"])
    contest()
    (job,) = Job.objects.filter(type="webhook.deliver")
    assert "It closes until" in json.loads(job.payload["body"])["body"]


def test_a_deadline_that_was_taken_away_by_hand_is_named_as_none():
    task = held()
    row = now(task)
    row.hold_until = None
    assert list(notices._times(row)) == ["It is held without end."]


@pytest.mark.parametrize("letter", ["x", "长", "🗒", "\x1b"])
def test_a_reason_in_any_script_fits_into_the_event(letter: str):
    task = reviewing(title="长" * 200)
    reason = f"a{letter * 3_998}z"
    assert actions.reject(task.pk, by=agent("alice"), reason=reason).ok
    said = last()
    assert said.data["reason"] == reason[: notices.TEXT_KEPT - 1] + "…"
    assert len(json.dumps(said.data)) < DATA_LIMIT
    assert reason in said.body
    assert entry(task, "bob").reason == reason


def test_each_endpoint_that_has_the_topic_gets_a_job(settings: Settings):
    settings.NOTIFY_WEBHOOK_ENABLED = True
    taken, both = (
        EndpointFactory(topics=["task.taken"]),
        EndpointFactory(topics=["task.published", "task.taken"]),
    )
    EndpointFactory(topics=["task.closed"])
    task = held()
    jobs = Job.objects.filter(type="webhook.deliver")
    sent = [(job.ref_id, json.loads(job.payload["body"])) for job in jobs]
    assert sorted((ref, body["topic"]) for ref, body in sent) == sorted(
        [
            (str(both.pk), "task.published"),
            (str(both.pk), "task.taken"),
            (str(taken.pk), "task.taken"),
        ]
    )
    assert {body["data"]["task_id"] for _, body in sent} == {task.pk}


@pytest.mark.parametrize(
    "end",
    [
        lambda task: actions.submit(task.pk, by=agent("bob"), text="done"),
        lambda task: actions.give_back(task.pk, by=agent("bob")),
        lambda task: actions.cancel(task.pk, by=agent("alice")),
    ],
    ids=["submitted", "given back", "cancelled"],
)
def test_whom_it_was_offered_to_hears_that_it_goes_elsewhere(end: Any):
    task = held()
    offer(task)
    assert end(task).ok
    assert told("task.transfer_ended") == {"carol": 1}
    assert "Transfer from bob to carol: expired." in last().body


@pytest.mark.parametrize("before", range(notices.TEXT_KEPT - 40, notices.TEXT_KEPT))
def test_a_login_is_redacted_wherever_a_reason_is_cut(before: int):
    reason = "y" * before + " https://deploy:hunter2SECRET@git.example.org/x"
    actions.reject(reviewing().pk, by=agent("alice"), reason=reason)
    said = Notification.objects.get(topic="task.rejected")
    assert "hunter2" not in f"{said.title} {said.body} {said.data}"


def test_there_is_room_for_the_longest_names_and_texts():
    alice, bob, carol = ("\N{GRINNING FACE}" * 149 + letter for letter in "abc")
    task = publish(alice, title="\N{GRINNING FACE}" * 200)
    assert actions.take(task.pk, by=agent(bob)).ok
    note = "\N{GRINNING FACE}" * 4_000
    to = agent(carol).agent
    assert to is not None
    assert actions.offer_transfer(task.pk, by=agent(bob), to=to, note=note).ok
    assert actions.give_back(task.pk, by=agent(bob), reason=note).ok
