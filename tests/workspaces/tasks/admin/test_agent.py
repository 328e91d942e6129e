from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from notify.models import AuditEntry
from tests.workspaces.tasks.admin.desk import (
    AGENTS,
    HOSTILE,
    client_with,
    html,
    messages,
    page,
)
from tests.workspaces.tasks.market import HOUR, agent, contest, held, publish
from workspaces.tasks import actions, agents
from workspaces.tasks.models import Agent, Task

pytestmark = pytest.mark.django_db


def audited() -> list[tuple[str, str]]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", "target"))


def user_agent(name: str) -> Agent:
    found = agent(name).agent
    assert found is not None
    return found


def add(client: Client, **data: Any) -> Any:
    return client.post(f"{AGENTS}add/", data, follow=True)


def switch(client: Client, action: str, *rows: Agent) -> Any:
    chosen = [str(row.pk) for row in rows]
    data = {"action": action, "_selected_action": chosen}
    return client.post(AGENTS, data, follow=True)


def now_holder(task: Task) -> Agent:
    task.refresh_from_db()
    assert task.holder is not None
    return task.holder


def reported() -> None:
    task = held("service:bot", checkpoint_every=HOUR)
    actions.checkpoint(task.pk, by=agent("service:bot"))


def offered() -> None:
    task = held("bob")
    actions.offer_transfer(task.pk, by=agent("bob"), to=user_agent("service:bot"))


class TestList:
    def test_it_has_the_kind_and_what_they_hold(self, admin_client: Client):
        task = held("service:bot")
        shown = html(admin_client.get(AGENTS))
        assert ">service:bot</a>" in shown
        assert "service account" in shown
        holder = now_holder(task)
        assert f'<a href="/admin/tasks/task/?holder={holder.pk}">1 task</a>' in shown

    def test_the_link_leads_to_what_it_holds(self, admin_client: Client):
        task = held("service:bot")
        publish()
        found = admin_client.get(f"/admin/tasks/task/?holder={now_holder(task).pk}")
        assert [row.pk for row in found.context["cl"].result_list] == [task.pk]
        assert "service:bot" in html(found)

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ({"kind": "service"}, ["service:bot"]),
            ({"kind": "user"}, ["alice"]),
            ({"kind": "x"}, ["alice", "service:bot"]),
            ({"enabled__exact": "0"}, []),
            ({"q": "bo"}, ["service:bot"]),
            ({"q": "ALIC"}, ["alice"]),
        ],
        ids=str,
    )
    def test_filters_and_search(
        self, admin_client: Client, query: dict[str, str], names: list[str]
    ):
        user_agent("alice")
        agents.add("bot")
        found = admin_client.get(AGENTS, query).context["cl"].result_list
        assert sorted(map(str, found)) == names

    @pytest.mark.parametrize("lookup", ["user__password__startswith", "owner__email"])
    def test_other_lookups_are_refused(self, admin_client: Client, lookup: str):
        assert admin_client.get(AGENTS, {lookup: "x"}).status_code == 400

    def test_more_agents_need_no_more_queries(self, admin_client: Client):
        held("service:bot")
        admin_client.get(AGENTS)  # what is looked up once in a process
        with CaptureQueriesContext(connection) as few:
            admin_client.get(AGENTS)
        for number in range(5):
            held(f"service:bot{number}")
        with CaptureQueriesContext(connection) as many:
            admin_client.get(AGENTS)
        assert len(many) == len(few) <= 9


class TestAdd:
    def test_a_service_account_has_a_name_and_an_owner(self, admin_client: Client):
        owner = User.objects.create_user("olga")
        response = add(admin_client, name="ci.bot-1", owner=owner.pk)
        made = Agent.objects.get(name="ci.bot-1")
        assert (made.owner, made.enabled, made.user) == (owner, True, None)
        assert messages(response)[0].startswith("success:")
        assert AuditEntry.objects.get().data == {"owner": "olga"}
        assert audited() == [("agent.add", "agent:service:ci.bot-1")]

    def test_it_can_do_without_an_owner(self, admin_client: Client):
        add(admin_client, name="bot")
        assert Agent.objects.get(name="bot").owner is None

    @pytest.mark.parametrize(
        "name", ["", "-bot", "my bot", "service:bot", "x" * 151, "bot\x00", HOSTILE]
    )
    def test_a_name_that_it_cannot_have_is_refused(
        self, admin_client: Client, name: str
    ):
        shown = html(add(admin_client, name=name))
        assert "errorlist" in shown
        assert HOSTILE not in shown
        assert not Agent.objects.exists()
        assert audited() == []

    def test_a_name_that_another_one_has_is_refused(self, admin_client: Client):
        agents.add("bot")
        assert "already exists" in html(add(admin_client, name="bot"))
        assert Agent.objects.count() == 1


class TestChange:
    def test_it_is_disabled_and_gets_an_owner(self, admin_client: Client):
        bot, owner = agents.add("bot"), User.objects.create_user("olga")
        admin_client.post(page(bot), {"owner": owner.pk})
        bot.refresh_from_db()
        assert (bot.enabled, bot.owner) == (False, owner)
        assert audited() == [
            ("agent.disable", "agent:service:bot"),
            ("agent.change", "agent:service:bot"),
        ]

    def test_its_name_stays(self, admin_client: Client):
        bot = agents.add("bot")
        admin_client.post(page(bot), {"name": "other", "enabled": "on"})
        bot.refresh_from_db()
        assert (bot.name, bot.enabled) == ("bot", True)
        assert audited() == []

    def test_a_users_row_is_only_looked_at(self, admin_client: Client):
        alice = user_agent("alice")
        shown = html(admin_client.get(page(alice)))
        assert f'href="/admin/auth/user/{alice.user_id}/change/"' in shown
        assert admin_client.post(page(alice), {"enabled": ""}).status_code == 403
        alice.refresh_from_db()
        assert alice.enabled

    def test_a_user_is_deleted_who_has_no_part_in_tasks(self, admin_client: Client):
        alice = user_agent("alice")
        url = reverse("admin:auth_user_delete", args=[alice.user_id])
        assert "Are you sure" in html(admin_client.get(url))
        admin_client.post(url, {"post": "yes"})
        assert not User.objects.filter(username="alice").exists()
        assert not Agent.objects.exists()

    def test_a_user_is_not_deleted_who_has(self, admin_client: Client):
        publisher = publish("alice").publisher
        url = reverse("admin:auth_user_delete", args=[publisher.user_id])
        assert "Cannot delete user" in html(admin_client.get(url))
        admin_client.post(url, {"post": "yes"})
        assert User.objects.filter(username="alice").exists()


class TestSwitch:
    def test_disable_and_enable(self, admin_client: Client):
        bot = agents.add("bot")
        assert messages(switch(admin_client, "disable", bot)) == ["success: 1 disabled"]
        assert list(Agent.objects.filter(enabled=False)) == [bot]
        switch(admin_client, "enable", bot)
        assert list(Agent.objects.filter(enabled=True)) == [bot]
        assert audited() == [
            ("agent.disable", "agent:service:bot"),
            ("agent.enable", "agent:service:bot"),
        ]

    def test_what_was_skipped_is_told(self, admin_client: Client):
        bot, alice = agents.add("bot"), user_agent("alice")
        other = agents.switch(agents.add("other"), enabled=False)
        assert messages(switch(admin_client, "disable", bot, alice, other)) == [
            "warning: 1 disabled, 1 skipped: disabled already, "
            "1 skipped: users are switched by `manage.py agent`"
        ]
        alice.refresh_from_db()
        assert alice.enabled


class TestDelete:
    def test_one_without_a_part_in_tasks_goes(self, admin_client: Client):
        bot = agents.add("bot")
        assert "Are you sure" in html(admin_client.get(page(bot, "delete")))
        admin_client.post(page(bot, "delete"), {"post": "yes"})
        assert not Agent.objects.exists()
        assert audited() == [("agent.delete", "agent:service:bot")]

    @pytest.mark.parametrize("method", ["get", "post"])
    def test_one_that_has_tasks_is_kept_and_the_reason_told(
        self, admin_client: Client, method: str
    ):
        held("service:bot")
        bot = Agent.objects.get(name="bot")
        response = getattr(admin_client, method)(
            page(bot, "delete"), {"post": "yes"}, follow=True
        )
        assert messages(response) == [
            "error: service:bot cannot be deleted: it holds tasks, and the history of those tasks keeps it. "
            "Disable it instead: then it can do nothing more."
        ]
        assert Agent.objects.filter(name="bot").exists()
        assert audited() == []

    @pytest.mark.parametrize(
        ("part", "words"),
        [
            (lambda: publish("service:bot"), "has published tasks"),
            (lambda: contest("service:bot"), "has handed in work"),
            (reported, "has reported checkpoints"),
            (offered, "had a part in transfers"),
        ],
        ids=["published", "entered", "reported", "offered"],
    )
    def test_whatever_part_it_has(
        self, admin_client: Client, part: Callable[[], object], words: str
    ):
        part()
        bot = Agent.objects.get(name="bot")
        response = admin_client.get(page(bot, "delete"), follow=True)
        assert words in messages(response)[0]

    def test_a_task_that_comes_in_between_is_found_by_the_database(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ):
        held("service:bot")
        bot = Agent.objects.get(name="bot")
        monkeypatch.setattr(
            "workspaces.tasks.admin.agent._part_in_tasks", lambda agent: []
        )
        response = admin_client.post(page(bot, "delete"), {"post": "yes"}, follow=True)
        assert Agent.objects.filter(name="bot").exists()
        assert audited() == []
        assert response.status_code == 200

    def test_not_several_at_once(self, admin_client: Client):
        assert "delete_selected" not in html(admin_client.get(AGENTS))


class TestPermissions:
    def test_whoever_may_only_look(self):
        client, bot = client_with("view_agent"), agents.add("bot")
        shown = html(client.get(page(bot)))
        assert 'name="enabled"' not in shown
        assert client.get(f"{AGENTS}add/").status_code == 403
        assert client.post(page(bot), {"enabled": ""}).status_code == 403
        assert client.post(page(bot, "delete"), {"post": "yes"}).status_code == 403
        switch(client, "disable", bot)
        bot.refresh_from_db()
        assert bot.enabled

    def test_whoever_may_not(self):
        client = client_with("view_task")
        assert client.get(AGENTS).status_code == 403
        assert client.get(page(agents.add("bot"))).status_code == 403
