"""The table of agents: what it cannot hold, whoever writes to it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from tests.workspaces.factories import UserFactory
from tests.workspaces.tasks.market import agent, held
from workspaces.tasks import agents
from workspaces.tasks.models import Agent

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"user": True, "name": "bot"},
        {"user": True, "owner": True},
        {"owner": True},
    ],
)
def test_it_is_a_user_or_a_service_account(values: dict[str, Any]):
    given = {
        key: UserFactory() if value is True else value for key, value in values.items()
    }
    with (
        pytest.raises(IntegrityError, match="task_agents_user_or_name"),
        transaction.atomic(),
    ):
        Agent.objects.create(**given)


def test_a_user_is_one_agent():
    bob = agent("bob").agent
    assert bob is not None
    with pytest.raises(IntegrityError), transaction.atomic():
        Agent.objects.create(user=bob.user)


def test_who_has_tasks_cannot_be_deleted():
    task = held()
    for one in (task.publisher, task.holder):
        assert one is not None
        assert one.user is not None
        with pytest.raises(ProtectedError):
            one.user.delete()
        with pytest.raises(ProtectedError):
            one.delete()


def test_who_has_none_goes_with_their_account():
    bob = agents.of_user(UserFactory())
    assert bob.user is not None
    bob.user.delete()
    assert not Agent.objects.exists()


def test_a_service_account_outlives_its_owner():
    owner = UserFactory()
    bot = agents.add("bot", owner=owner)
    owner.delete()
    bot.refresh_from_db()
    assert bot.owner is None


def test_it_may_act_while_it_is_enabled_and_may_log_in():
    bot = agents.add("bot")
    bot.refresh_from_db()
    assert (bot.enabled, bot.may_act) == (True, True)
    bob = agents.of_user(UserFactory(is_active=False))
    assert (bob.enabled, bob.may_act) == (True, False)
    bot.enabled = False
    assert not bot.may_act
