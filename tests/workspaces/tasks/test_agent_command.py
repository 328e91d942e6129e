"""``manage.py agent``."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from notify.models import AuditEntry
from tests.workspaces.tasks.calling import answer, refusal, refused, run
from tests.workspaces.tasks.market import agent, held, publish
from workspaces.tasks import actions
from workspaces.tasks.models import Agent

pytestmark = pytest.mark.django_db


def test_a_service_account_is_made_for_its_owner():
    User.objects.create_user("ada")
    assert run("agent", "add", "bot", "--owner", "ada") == "service:bot\n"
    made = Agent.objects.get()
    assert (made.name, made.owner) == ("bot", User.objects.get())
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target) == ("agent.add", "agent:service:bot")
    assert entry.data == {"owner": "ada"}
    assert entry.actor.startswith("command line (")


def test_it_may_have_no_owner():
    assert answer("agent", "add", "bot") == {
        "ok": True,
        "agent": "service:bot",
        "enabled": True,
    }
    assert AuditEntry.objects.get().data == {"owner": None}


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (["add", "a b"], 2, "name 'a b': letters, digits"),
        (["add", "bot"], 1, "there is a service account service:bot already"),
        (["add", "new", "--owner", "ghost"], 1, "--owner: there is no user 'ghost'"),
        (["add", "new", "--owner", "\udcff"], 1, "there is no user '\\udcff'"),
        (["disable", "bot"], 1, "a service account is named service:NAME"),
        (["enable", "service:new"], 1, "`manage.py agent add new` makes it"),
    ],
)
def test_an_error_is_one_line_or_one_json_document(
    arguments: list[str], status: int, reason: str
):
    agent("service:bot")
    assert reason in refused("agent", *arguments, status=status)
    assert reason in refusal("agent", *arguments, status=status)["reason"]
    assert Agent.objects.count() == 1
    assert not AuditEntry.objects.exists()


def test_one_is_switched_off_and_on_again_once_each():
    bot = agent("service:bot").agent
    assert bot
    assert run("agent", "disable", "service:bot") == "service:bot: disabled\n"
    assert run("agent", "disable", "service:bot") == "service:bot: disabled already\n"
    bot.refresh_from_db()
    assert not bot.enabled
    task = publish()
    assert "service:bot is disabled" in refused(
        "task", "take", task.pk, "--as", "service:bot"
    )
    assert answer("agent", "enable", "service:bot")["enabled"] is True
    run("task", "take", task.pk, "--as", "service:bot")
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["agent.disable", "agent.enable"]


def test_all_are_listed_with_what_they_have_to_do():
    assert "agent add NAME" in run("agent", "list")
    owner = User.objects.create_user("ada")
    bot = agent("service:bot").agent
    assert bot
    Agent.objects.filter(pk=bot.pk).update(owner=owner)
    held("service:bot")
    publish("alice")
    actions.cancel(publish("alice").pk, by=agent("alice"))
    User.objects.filter(username="alice").update(is_active=False)
    assert answer("agent", "list") == [
        {
            "agent": "service:bot",
            "kind": "service account",
            "may_act": True,
            "owner": "ada",
            "holds": 1,
            "published_live": 0,
        },
        {
            "agent": "alice",
            "kind": "user",
            "may_act": False,
            "owner": None,
            "holds": 0,
            "published_live": 2,
        },
    ]
    printed = run("agent", "list").splitlines()
    assert printed[0].split()[:2] == ["AGENT", "KIND"]
    assert printed[1].split() == [
        "service:bot",
        "service",
        "account",
        "yes",
        "ada",
        "1",
        "0",
    ]
