from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client, RequestFactory
from django.urls import reverse

from acw.console import ConsoleSite
from notify.models import Notification


def test_the_admin_site_is_the_console():
    assert isinstance(admin.site, ConsoleSite)


@pytest.mark.django_db
def test_apps_come_in_the_order_of_what_operators_look_at(rf: RequestFactory):
    request = rf.get(reverse("admin:index"))
    request.user = User.objects.create_superuser("root", password="x")
    labels = [app["app_label"] for app in admin.site.get_app_list(request)]
    known = [
        label for label in labels if label in ("jobs", "notify", "tasks", "workspaces")
    ]
    assert known == ["jobs", "notify", "tasks", "workspaces"]
    assert labels.index("auth") >= len(known)


@pytest.mark.django_db
def test_the_front_page_has_acws_title(admin_client: Client):
    page = admin_client.get("/admin/").content.decode()
    assert "ACW console" in page


@pytest.mark.django_db
def test_every_page_of_it_leads_to_the_inbox_and_counts_what_is_unread(
    admin_client: Client, admin_user: User
):
    page = admin_client.get("/admin/").content.decode()
    assert f'<a href="{reverse("notify:inbox")}">Inbox</a>' in page
    Notification.objects.create(user=admin_user, topic="a.b", title="News")
    assert ">Inbox (1)</a>" in admin_client.get("/admin/").content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        "/admin/workspaces/worktree/?state__exact=%00",
        "/admin/notify/notification/?topic=%00",
        "/admin/jobs/runnerstate/a%00b/change/",
    ],
)
def test_what_no_row_can_have_is_refused_and_breaks_nothing(
    admin_client: Client, path: str
):
    with transaction.atomic():
        assert admin_client.get(path).status_code == 400


@pytest.mark.django_db
def test_no_action_breaks_by_what_is_said_to_be_selected(admin_client: Client):
    chosen = {"action": "retry", "_selected_action": "a\x00b"}
    url = reverse("admin:jobs_job_changelist")
    with transaction.atomic():
        assert admin_client.post(url, chosen).status_code == 400
