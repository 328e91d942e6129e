from __future__ import annotations

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from tests.workspaces.admin.desk import shown, staff
from tests.workspaces.factories import WorkspaceFactory
from workspaces.models import WorkspaceHost

pytestmark = pytest.mark.django_db

PAGE = "admin:workspaces_workspacehost"


@pytest.fixture
def stopped() -> WorkspaceHost:
    return WorkspaceHost.objects.create(
        host="far",
        mark="f" * 32,
        stopped_at=Now(),
        stopped_reason="<b> is empty: is the disk mounted? https://u:SECRET@git.example/",
        disk_free=25 * 1024**3,
        disk_total=100 * 1024**3,
        found={
            "aside": {"shop": 2, "mill": 1},
            "unknown": ["<i>nobodys"],
            "failed": ["shop: it stays until nobody works in it"],
        },
    )


def test_the_list_tells_which_goes_on_and_what_waits(
    admin_client: Client, stopped: WorkspaceHost
):
    WorkspaceHost.objects.create(host="near", looked_at=Now())
    WorkspaceHost.objects.create(host="new")
    page = shown(admin_client, PAGE).replace("\xa0", " ")
    for word in (
        ">stopped itself<",
        ">goes on<",
        ">no pass yet<",
        "25.0 GB of 100.0 GB free (25%)",
        "3 put aside, 1 unknown, 1 not mended",
    ):
        assert word in page, word
    url = reverse(f"{PAGE}_changelist")
    for query in ({"stopped": "yes"}, {"q": "fa"}):
        page = admin_client.get(url, query).content.decode()
        assert (">far<" in page, ">near<" in page) == (True, False), query


def test_the_page_has_all_that_an_operator_needs(
    admin_client: Client, stopped: WorkspaceHost
):
    page = shown(admin_client, PAGE, stopped)
    for word in (
        "&lt;b&gt; is empty: is the disk mounted?",
        "run on far: manage.py workspace reconcile --force",
        "f" * 32,
        "<li>mill: 1</li><li>shop: 2</li>",
        "<li>&lt;i&gt;nobodys</li>",
        "<li>shop: it stays until nobody works in it</li>",
        "/workspaces/workspace/?host=far",
    ):
        assert word in page, word
    assert "SECRET" not in page


def test_a_workspace_leads_to_its_host(admin_client: Client, stopped: WorkspaceHost):
    workspace = WorkspaceFactory(host="far")
    page = shown(admin_client, "admin:workspaces_workspace", workspace)
    assert "/workspaces/workspacehost/?q=far" in page


def test_nobody_changes_it_and_who_may_see_it_does(
    admin_client: Client, client: Client, stopped: WorkspaceHost
):
    assert admin_client.get(reverse(f"{PAGE}_add")).status_code == 403
    for page in ("change", "delete"):
        url = reverse(f"{PAGE}_{page}", args=[stopped.pk])
        assert admin_client.post(url, {"mark": "x"}).status_code == 403, page
    assert WorkspaceHost.objects.get().mark == stopped.mark
    url = reverse(f"{PAGE}_change", args=[stopped.pk])
    assert client.get(url).status_code == 302
    assert staff(client, "view_workspace").get(url).status_code == 403
