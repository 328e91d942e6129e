from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection
from django.test import Client, RequestFactory
from django.urls import reverse

from acw import refusals
from tests.jobs.browsing import client_with
from tests.jobs.factories import JobFactory
from tests.notify.factories import EndpointFactory
from tests.workspaces.factories import WorktreeFactory

pytestmark = pytest.mark.django_db


def test_who_may_not_see_a_page_is_told_which_permission_is_missing_and_who_gives_it():
    client = client_with("view_job")
    url = reverse("admin:workspaces_worktree_change", args=[WorktreeFactory().pk])
    response = client.get(url)
    page = response.content.decode()
    assert response.status_code == 403
    assert "<code>workspaces.view_worktree</code>" in page
    assert "The account <strong>dora</strong>" in page
    assert "Whoever may change users gives it" in page
    assert reverse("admin:index") in page


def test_a_list_says_the_same():
    page = client_with().get(reverse("admin:jobs_job_changelist")).content.decode()
    assert "Can view job (<code>jobs.view_job</code>)" in page


def test_for_a_button_its_own_permission_is_named_and_no_other():
    client = client_with("view_job")
    job = JobFactory(dead=True)
    response = client.post(reverse("admin:jobs_job_retry", args=[job.pk]))
    page = response.content.decode()
    assert response.status_code == 403
    assert "<code>jobs.retry_job</code>" in page
    assert "jobs.view_job" not in page


def test_a_button_whose_permission_has_another_name_says_that_one():
    url = reverse("admin:notify_webhookendpoint_recover", args=[EndpointFactory().pk])
    page = client_with().get(url).content.decode()
    assert "<code>notify.resend_webhookdelivery</code>" in page
    assert "<code>notify.view_webhookendpoint</code>" in page


def test_an_address_that_does_not_exist_leads_to_the_overview(admin_client: Client):
    response = admin_client.get("/admin/no-such-page/")
    page = response.content.decode()
    assert response.status_code == 404
    assert "There is no such page" in page
    assert reverse("admin:index") in page


def test_what_is_not_there_is_named(admin_client: Client):
    url = reverse("admin:jobs_job_retry", args=["<b>7"])
    response = admin_client.post(url)
    assert response.status_code == 404
    assert "there is no job &lt;b&gt;7" in response.content.decode()


def test_a_user_of_the_inbox_is_led_there(client: Client):
    client.force_login(User.objects.create_user("guest"))
    page = client.get("/no-such-page").content.decode()
    assert reverse("notify:inbox") in page
    assert "To the overview" not in page


def test_nobody_who_is_logged_out_costs_a_query(
    client: Client, django_assert_num_queries: object
):
    with django_assert_num_queries(0):  # type: ignore[operator]
        assert client.get("/no-such-page").status_code == 404


def away(*_: object) -> None:
    raise OperationalError("the server is away")


def test_while_the_database_is_away_what_is_not_there_is_no_server_error(
    client: Client,
):
    client.force_login(User.objects.create_user("guest"))
    with connection.execute_wrapper(away):
        response = client.get("/no-such-page")
    assert response.status_code == 404


def test_nor_is_what_may_not_be_seen(rf: RequestFactory):
    request = rf.get("/")
    request.user = User.objects.create_user("guest")
    with connection.execute_wrapper(away):
        response = refusals.forbidden(request, PermissionDenied("jobs.view_job"))
    assert response.status_code == 403


def test_for_the_password_of_a_user_it_takes_the_change_of_one():
    client = client_with()
    user = User.objects.create_user("guest")
    url = reverse("admin:auth_user_password_change", args=[user.pk])
    page = client.get(url).content.decode()
    assert "<code>auth.change_user</code>" in page
