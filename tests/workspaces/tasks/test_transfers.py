from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from tests.workspaces.tasks.market import (
    HOUR,
    MINUTE,
    agent,
    held,
    last_event,
    now,
    offer,
    offered,
    pass_and_work,
    pass_time,
    unwatched,
)
from workspaces.tasks import actions, agents, transfers
from workspaces.tasks.actors import WORKER
from workspaces.tasks.change import Change, Details
from workspaces.tasks.models import Agent, Task, Transfer
from workspaces.tasks.states import Action, Reason, Role, Status
from workspaces.tasks.transition import Transition

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def lasts(settings: Settings) -> None:
    settings.TASKS_TRANSFER_FOR = HOUR


def carol() -> Agent:
    found = agent("carol").agent
    assert found is not None
    return found


def state(task: Task) -> str:
    return task.transfers.latest("pk").status


def test_an_offer_waits_for_an_answer():
    task = held()
    outcome = offer(task, note=" yours? ")
    row = task.transfers.get()
    assert outcome.created_id == row.pk
    assert (str(row.from_agent), str(row.to_agent)) == ("bob", "carol")
    assert (row.note, row.status) == ("yours?", "pending")
    assert row.expires_at == row.created_at + HOUR
    assert last_event(task).data == {
        "transfer_id": row.pk,
        "from": "bob",
        "to": "carol",
        "note": "yours?",
    }
    assert str(now(task).holder) == "bob"
    assert now(task).transfer_until == row.expires_at
    assert unwatched(task) == set()


def test_an_offer_ends_with_the_holders_own_time():
    task = held(hold_for=HOUR / 2)
    assert offer(task).ok
    assert task.transfers.get().expires_at == now(task).hold_until


def test_who_accepts_holds_it_until_the_same_time_with_checkpoints_anew():
    task = offered(checkpoint_every=2 * HOUR, final_miss=2)
    pass_time(MINUTE)
    until = now(task).hold_until
    Task.objects.filter(pk=task.pk).update(misses=1)
    assert actions.accept_transfer(task.pk, by=agent("carol")).ok
    at, task = last_event(task).created_at, now(task)
    assert (str(task.holder), task.hold_until, task.misses) == ("carol", until, 0)
    assert task.checkpoint_due_at == at + 2 * HOUR
    assert state(task) == "accepted"
    assert task.transfers.get().answered_at == at
    assert last_event(task).data["transfer"] == "accepted"
    assert unwatched(task) == set()
    assert not actions.submit(task.pk, by=agent("bob"), text="mine").ok
    assert actions.submit(task.pk, by=agent("carol"), text="mine").ok


@pytest.mark.parametrize(
    ("action", "by", "becomes"),
    [
        (actions.decline_transfer, "carol", "declined"),
        (actions.withdraw_transfer, "bob", "withdrawn"),
    ],
)
def test_declined_or_withdrawn_its_holder_keeps_it(action: Any, by: str, becomes: str):
    task = offered()
    assert action(task.pk, by=agent(by)).ok
    assert (state(task), str(now(task).holder)) == (becomes, "bob")
    assert now(task).transfer_until is None
    again = action(task.pk, by=agent(by))
    assert again.code in (Reason.NO_TRANSFER, Reason.NOT_YOURS)
    assert offer(task).ok


def test_without_an_offer_there_is_nothing_to_withdraw_or_accept():
    task = held()
    refused = actions.withdraw_transfer(task.pk, by=agent("bob"))
    assert (refused.code, refused.reason) == (
        Reason.NO_TRANSFER,
        "no transfer is pending",
    )
    refused = actions.accept_transfer(task.pk, by=agent("carol"))
    assert refused.code == Reason.NOT_YOURS


def test_nobody_else_answers():
    task = offered()
    for name in ("alice", "bob", "dave"):
        assert actions.accept_transfer(task.pk, by=agent(name)).code == Reason.NOT_YOURS
        assert (
            actions.decline_transfer(task.pk, by=agent(name)).code == Reason.NOT_YOURS
        )
    assert (
        actions.withdraw_transfer(task.pk, by=agent("carol")).code == Reason.NOT_YOURS
    )
    assert state(task) == "pending"


def test_one_offer_at_a_time():
    task = offered()
    until = now(task).transfer_until
    refused = offer(task, "dave")
    assert refused.code == Reason.TRANSFER_PENDING
    assert refused.reason == (
        f"it is offered to carol already, until {until:%Y-%m-%d %H:%M:%S} UTC; "
        "withdraw that first"
    )
    assert task.transfers.count() == 1


def test_an_offer_that_is_not_answered_ends():
    task = offered()
    pass_time(HOUR)
    assert actions.accept_transfer(task.pk, by=agent("carol")).code == Reason.TOO_LATE
    assert actions.withdraw_transfer(task.pk, by=agent("bob")).code == Reason.TOO_LATE
    pass_and_work(MINUTE)
    assert (state(task), str(now(task).holder)) == ("expired", "bob")
    assert last_event(task).actor == "worker"
    assert last_event(task).data["transfer"] == "expired"


def test_it_is_offered_to_somebody_else_who_can_act():
    task = held()
    refused = offer(task, "bob")
    assert (refused.code, refused.reason) == (
        Reason.AGENT_REFUSED,
        "bob holds it already",
    )
    agents.switch(carol(), enabled=False)
    refused = offer(task)
    assert (refused.code, refused.reason) == (
        Reason.AGENT_REFUSED,
        "carol is disabled",
    )
    assert not Transfer.objects.exists()


def test_who_was_disabled_meanwhile_cannot_accept():
    task = offered()
    agents.switch(carol(), enabled=False)
    refused = actions.accept_transfer(task.pk, by=agent("carol"))
    assert (refused.code, refused.reason) == (
        Reason.AGENT_REFUSED,
        "carol is disabled",
    )


def test_it_may_be_offered_to_its_publisher():
    task = held()
    assert offer(task, "alice").ok
    assert actions.accept_transfer(task.pk, by=agent("alice")).ok
    assert str(now(task).holder) == "alice"


@pytest.mark.parametrize(
    ("leave", "status"),
    [
        (lambda pk: actions.submit(pk, by=agent("bob"), text="x"), Status.REVIEWING),
        (lambda pk: actions.give_back(pk, by=agent("bob")), Status.OPEN),
        (lambda pk: actions.cancel(pk, by=agent("alice")), Status.CANCELLED),
    ],
)
def test_an_offer_ends_when_the_task_goes_elsewhere(leave: Any, status: Status):
    task = offered(returns_allowed=1)
    assert leave(task.pk).status == status
    assert state(task) == "expired"
    assert last_event(task).data["transfer"] == "expired"
    assert now(task).transfer_until is None
    refused = actions.accept_transfer(task.pk, by=agent("carol"))
    assert refused.code == Reason.WRONG_STATUS


def test_an_offer_without_agent_or_held_task_is_a_mistake_of_the_caller():
    row = Transition(Action.OFFER_TRANSFER, Status.HELD, Status.HELD, Role.HOLDER)
    change = Change(
        action=row.action,
        row=row,
        task=now(held()),
        by=WORKER,
        now=timezone.now(),
        details=Details(),
    )
    with pytest.raises(ValueError, match="needs an agent to offer it to"):
        transfers.offer(change)
