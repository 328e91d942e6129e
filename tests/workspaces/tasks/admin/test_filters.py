from __future__ import annotations

import pytest
from django.test import Client

from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.tasks.admin.desk import LIST, html
from tests.workspaces.tasks.market import (
    HOUR,
    held,
    now,
    pass_time,
    publish,
)
from workspaces.tasks.models import Task

pytestmark = pytest.mark.django_db


class TestChosen:
    def rows(self, client: Client, **query: str) -> list[Task]:
        return list(client.get(LIST, query).context["cl"].result_list)

    def test_by_status_and_template(self, admin_client: Client):
        held(), publish()
        wanted = publish(template="contest")
        assert self.rows(admin_client, template="contest") == [wanted]
        assert self.rows(admin_client, status="open", template="contest") == [wanted]

    def test_overdue(self, admin_client: Client):
        wanted = held()
        pass_time(7 * HOUR)
        publish()
        assert self.rows(admin_client, overdue="yes") == []
        pass_time(2 * HOUR)
        assert self.rows(admin_client, overdue="yes") == [wanted]
        assert len(self.rows(admin_client, overdue="x")) == 2

    def test_by_workspace(self, admin_client: Client):
        workspace = WorkspaceFactory(name="demo")
        wanted = publish(workspace=workspace)
        publish()
        assert self.rows(admin_client, workspace=str(workspace.pk)) == [wanted]
        assert ">demo</a>" in html(admin_client.get(LIST))

    def test_by_the_agents_of_a_link(self, admin_client: Client):
        wanted = held("bob")
        publish("carol")
        holder, publisher = now(wanted).holder, now(wanted).publisher
        assert holder is not None
        assert self.rows(admin_client, holder=str(holder.pk)) == [wanted]
        assert self.rows(admin_client, publisher=str(publisher.pk)) == [wanted]
        chosen = html(admin_client.get(LIST, {"holder": str(holder.pk)}))
        assert "By holder" in chosen
        assert "By holder" not in html(admin_client.get(LIST))

    @pytest.mark.parametrize(
        "name", ["status", "template", "workspace", "holder", "publisher"]
    )
    @pytest.mark.parametrize("value", ["x", "-1", "9" * 19, "9" * 5_000, "²", "a\x00b"])
    def test_what_cannot_be_chosen_finds_nothing(
        self, admin_client: Client, name: str, value: str
    ):
        held()
        assert self.rows(admin_client, **{name: value}) == []

    def test_an_agent_that_is_gone_is_said_to_be(self, admin_client: Client):
        shown = html(admin_client.get(LIST, {"holder": "4711"}))
        assert "no such holder" in shown
