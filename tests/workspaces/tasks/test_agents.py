from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser, User

from tests.workspaces.factories import AdminFactory, UserFactory
from tests.workspaces.tasks.market import agent, publish
from workspaces.tasks import actions, agents
from workspaces.tasks.exceptions import AgentExists, InvalidTask, UnknownAgent
from workspaces.tasks.models import Agent
from workspaces.tasks.states import Reason

pytestmark = pytest.mark.django_db


def test_a_user_becomes_an_agent_when_first_asked_for():
    user = UserFactory(username="bob")
    found = agents.find("bob")
    assert (found.user, str(found)) == (user, "bob")
    assert agents.find("bob") == agents.of_user(user) == found
    assert Agent.objects.count() == 1


def test_a_service_account_goes_by_its_name():
    owner = UserFactory()
    added = agents.add("nightly-2.x", owner=owner)
    assert str(added) == "service:nightly-2.x"
    found = agents.find("service:nightly-2.x")
    assert (found, found.owner, found.user) == (added, owner, None)


def test_a_user_and_a_service_account_may_share_a_name():
    UserFactory(username="bot")
    assert agents.add("bot") != agents.find("bot")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bob", "there is no user 'bob'; a service account is named service:NAME"),
        (
            "service:bot",
            "there is no service account 'service:bot'; `manage.py agent add bot` makes it",
        ),
        ("", "there is no user ''; a service account is named service:NAME"),
        ("a\x00b", "there is no agent 'a\\x00b'"),
        ("service:a\x00b", "there is no agent 'service:a\\x00b'"),
        ("a\udcffb", "there is no agent 'a\\udcffb'"),
        ("a\nb", "there is no agent 'a\\nb'"),
    ],
)
def test_an_unknown_one_is_named_in_the_error(name: str, said: str):
    with pytest.raises(UnknownAgent) as error:
        agents.find(name)
    assert str(error.value) == said


@pytest.mark.parametrize(
    "name",
    ["", " ", "-bot", ".bot", "a b", "a:b", "a/b", "bot\n", "böt", "x" * 151, "a\x00"],
)
def test_a_name_that_could_not_be_typed_is_refused(name: str):
    with pytest.raises(InvalidTask, match=r"name .*letters, digits and"):
        agents.add(name)
    assert not Agent.objects.exists()


def test_a_name_is_given_once():
    agents.add("x" * 150)
    with pytest.raises(
        AgentExists, match=f"there is a service account service:{'x' * 150} already"
    ):
        agents.add("x" * 150)
    # The transaction goes on.
    assert Agent.objects.count() == 1


@pytest.mark.parametrize("user", [AnonymousUser(), User(username="new")])
def test_who_has_no_account_is_nobodys_agent(user: User):
    agents.add("bot")
    with pytest.raises(ValueError, match="is no user who could be an agent"):
        agents.of_user(user)


def test_one_that_is_switched_off_can_do_nothing_until_it_is_switched_on():
    bot = agents.add("bot")
    task = publish()
    assert agents.switch(bot, enabled=False).enabled is False
    refused = actions.take(task.pk, by=agent("service:bot"))
    assert (refused.code, refused.reason) == (
        Reason.AGENT_REFUSED,
        "service:bot is disabled",
    )
    with pytest.raises(InvalidTask, match="publisher: service:bot is disabled"):
        publish("service:bot")
    agents.switch(bot, enabled=True)
    assert actions.take(task.pk, by=agent("service:bot")).ok


def test_a_user_who_cannot_log_in_cannot_act():
    task = publish()
    agent("bob")
    User.objects.filter(username="bob").update(is_active=False)
    assert actions.take(task.pk, by=agent("bob")).code == Reason.AGENT_REFUSED


def test_who_is_told_for_an_agent():
    root = AdminFactory()
    bob, olivia, gone = UserFactory(), UserFactory(), UserFactory(is_active=False)
    assert agents.people(agents.of_user(bob)) == [bob]
    assert agents.people(agents.add("one", owner=olivia)) == [olivia]
    assert agents.people(agents.add("two")) == [root]
    assert agents.people(agents.add("three", owner=gone)) == [root]
    assert agents.people(agents.of_user(gone)) == [root]
