from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from notify.models import AuditEntry
from tests.workspaces.admin.desk import shown, staff
from tests.workspaces.remote import git
from workspaces import seal
from workspaces.exceptions import ConfigTampered
from workspaces.models import Workspace
from workspaces.repository import Repository

pytestmark = pytest.mark.django_db

PAGE = "admin:workspaces_workspace"


@pytest.fixture
def url(workspace: Workspace, repository: Repository) -> str:
    """The page that asks; an agent has planted a key in the clone."""
    git("config", "core.sshCommand", "run <evil>", cwd=repository.path)
    with pytest.raises(ConfigTampered):
        seal.check(workspace, repository)
    return reverse(f"{PAGE}_approve", args=[workspace.pk])


def seen(page: str) -> str:
    found = re.search(r'name="seen" value="([0-9a-f]+)"', page)
    assert found
    return found[1]


def test_what_was_planted_is_shown_and_approved(
    admin_client: Client, url: str, workspace: Workspace, repository: Repository
):
    page = shown(admin_client, PAGE, workspace)
    assert "core.sshcommand" in page
    assert "run &lt;evil&gt;" in page
    assert url in page
    question = admin_client.get(url).content.decode()
    assert "run &lt;evil&gt;" in question
    page = admin_client.post(
        url, {"seen": seen(question)}, follow=True
    ).content.decode()
    assert "1 key approved." in page
    seal.check(Workspace.objects.get(), repository)
    assert AuditEntry.objects.filter(action="workspace.approve").count() == 1
    assert url not in page


def test_nothing_that_was_planted_after_the_page_was_drawn(
    admin_client: Client, url: str, repository: Repository
):
    question = admin_client.get(url).content.decode()
    git("config", "core.fsmonitor", "more", cwd=repository.path)
    page = admin_client.post(url, {"seen": seen(question)}).content.decode()
    assert "It has changed since the page was drawn" in page
    assert "core.fsmonitor" in page
    assert Workspace.objects.get().approved_config == []


def test_a_seal_that_is_whole_has_nothing_to_approve(
    admin_client: Client, workspace: Workspace
):
    url = reverse(f"{PAGE}_approve", args=[workspace.pk])
    assert "Nothing is there" in admin_client.get(url).content.decode()
    assert url not in shown(admin_client, PAGE, workspace)


def test_another_hosts_is_approved_there(
    admin_client: Client, url: str, settings: Settings
):
    settings.ACW_HOST = "elsewhere"
    page = admin_client.get(url, follow=True).content.decode()
    assert "lies on host" in page


def test_only_by_who_has_that_permission(client: Client, url: str):
    staff(client, "view_workspace", "change_workspace", "fetch_workspace")
    assert client.get(url).status_code == 403
    assert client.post(url, {"seen": ""}).status_code == 403
    assert url not in shown(client, PAGE, Workspace.objects.get())
