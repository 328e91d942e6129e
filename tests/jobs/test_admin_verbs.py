from __future__ import annotations

from typing import Any

import pytest
from django.contrib import messages as levels
from django.test import Client
from django.urls import reverse

from jobs import admin_verbs, verbs
from jobs.models import Job, Status
from tests.jobs.auditing import recorded_audit
from tests.jobs.browsing import USERNAME, client_with, messages
from tests.jobs.factories import JobFactory

pytestmark = pytest.mark.django_db

LIST = "/admin/jobs/job/"


def page(job: Job) -> str:
    return reverse("admin:jobs_job_change", args=[job.pk])


def button(job: Job, verb: str) -> str:
    return reverse(f"admin:jobs_job_{verb}", args=[job.pk])


@pytest.mark.parametrize(
    ("verb", "permission", "state", "after"),
    [
        ("retry", "retry_job", {"dead": True}, Status.PENDING),
        ("cancel", "cancel_job", {}, Status.CANCELLED),
        ("run_now", "run_now_job", {"later": True}, Status.PENDING),
    ],
    ids=["retry", "cancel", "run_now"],
)
class TestVerbs:
    def test_the_button_does_it_and_says_so(
        self, verb: str, permission: str, state: Any, after: str
    ):
        job = JobFactory(**state)
        client = client_with("view_job", permission)
        with recorded_audit() as told:
            response = client.post(button(job, verb), follow=True)
        job.refresh_from_db()
        assert job.status == after
        assert messages(response)[0].startswith("1 ")
        assert response.redirect_chain[-1][0] == page(job)
        assert [audit["actor"] for audit in told] == [USERNAME]

    def test_the_list_does_it_to_those_selected(
        self, verb: str, permission: str, state: Any, after: str
    ):
        selected, other = JobFactory(**state), JobFactory(**state)
        client = client_with("view_job", permission)
        response = client.post(
            LIST, {"action": verb, "_selected_action": [str(selected.pk)]}, follow=True
        )
        selected.refresh_from_db()
        assert selected.status == after
        assert messages(response)[0].startswith("1 ")
        before = Job.objects.filter(pk=other.pk).values_list("status", "run_at").get()
        assert before == (other.status or Status.PENDING, other.run_at)

    def test_it_needs_its_permission(
        self, verb: str, permission: str, state: Any, after: str
    ):
        job = JobFactory(**state)
        others = {"retry_job", "cancel_job", "run_now_job"} - {permission}
        client = client_with("view_job", *others)
        before = Job.objects.filter(pk=job.pk).values().get()
        assert client.post(button(job, verb)).status_code == 403
        client.post(LIST, {"action": verb, "_selected_action": [str(job.pk)]})
        assert Job.objects.filter(pk=job.pk).values().get() == before
        assert verb not in dict(
            client.get(LIST).context["action_form"].fields["action"].choices
        )

    def test_it_needs_the_permission_to_view_too(
        self, verb: str, permission: str, state: Any, after: str
    ):
        job = JobFactory(**state)
        assert client_with(permission).post(button(job, verb)).status_code == 403

    def test_it_is_posted(
        self, admin_client: Client, verb: str, permission: str, state: Any, after: str
    ):
        assert admin_client.get(button(JobFactory(**state), verb)).status_code == 405

    def test_it_needs_the_token_against_forgery(
        self, verb: str, permission: str, state: Any, after: str
    ):
        client = client_with("view_job", permission, enforce_csrf_checks=True)
        assert client.post(button(JobFactory(**state), verb)).status_code == 403

    def test_it_needs_a_login(
        self, client: Client, verb: str, permission: str, state: Any, after: str
    ):
        response = client.post(button(JobFactory(**state), verb))
        assert response.status_code == 302
        assert "/admin/login/" in response["Location"]


class TestAllThatMatch:
    """The action on everything that the filter matches, also beyond the page."""

    FORM = {"action": "retry", "select_across": "1", "index": "0"}

    def form(self, **more: str) -> dict[str, str]:
        return {**self.FORM, "_selected_action": str(Job.objects.dead()[0].pk), **more}

    def test_it_is_asked_first_with_the_number(self, admin_client: Client):
        JobFactory.create_batch(3, dead=True, type="test.x")
        JobFactory(dead=True)
        response = admin_client.post(f"{LIST}?type=test.x", self.form())
        html = response.content.decode()
        assert "3 jobs match the filter" in html
        assert "Retry: all 3" in html
        assert Job.objects.pending().count() == 0

    def test_when_confirmed_it_is_done_to_all_of_them(self, admin_client: Client):
        JobFactory.create_batch(3, dead=True, type="test.x")
        JobFactory(dead=True)
        asked = admin_client.post(f"{LIST}?type=test.x", self.form())
        form = asked.context["fields"]
        response = admin_client.post(f"{LIST}?type=test.x", form, follow=True)
        assert messages(response) == ["3 retried"]
        assert Job.objects.dead().count() == 1

    def test_it_goes_beyond_one_page(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(verbs, "BATCH", 20)
        JobFactory.create_batch(70, dead=True)
        form = self.form(confirmed="1")
        del form["index"]
        response = admin_client.post(f"{LIST}?status=dead", form, follow=True)
        assert messages(response) == ["70 retried"]

    def test_what_takes_too_long_is_left_for_the_next_request(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(admin_verbs, "TIME_LIMIT", 0.0)
        monkeypatch.setattr(verbs, "BATCH", 2)
        JobFactory.create_batch(5, dead=True)
        response = admin_client.post(
            f"{LIST}?status=dead", self.form(confirmed="1"), follow=True
        )
        assert messages(response) == ["2 retried; there are more, do it again"]

    def test_it_needs_its_permission(self):
        JobFactory(dead=True)
        client = client_with("view_job", "cancel_job")
        client.post(f"{LIST}?status=dead", self.form(confirmed="1"))
        assert Job.objects.dead().count() == 1


def test_cancelling_all_that_match_says_what_happens_to_running_ones(
    admin_client: Client,
):
    running = JobFactory(running=True)
    JobFactory()
    form = {"action": "cancel", "select_across": "1", "index": "0"}
    form["_selected_action"] = str(running.pk)
    asked = admin_client.post(LIST, form)
    assert "Running ones are asked to stop" in asked.content.decode()
    response = admin_client.post(LIST, asked.context["fields"], follow=True)
    assert messages(response) == [
        "1 cancelled, 1 asked to stop: it is running on worker-1"
    ]
    running.refresh_from_db()
    assert running.cancel_requested_at is not None


class TestTelling:
    """A message's level goes by what came of the verb."""

    def level(self, client: Client, *jobs: Job) -> int:
        form = {"action": "retry", "_selected_action": [str(job.pk) for job in jobs]}
        (message,) = client.post(LIST, form, follow=True).context["messages"]
        return int(message.level)

    def test_all_done(self, admin_client: Client):
        assert self.level(admin_client, JobFactory(dead=True)) == levels.SUCCESS

    def test_some_skipped(self, admin_client: Client):
        jobs = JobFactory(dead=True), JobFactory(running=True)
        assert self.level(admin_client, *jobs) == levels.WARNING

    def test_asked_to_stop(self, admin_client: Client):
        response = admin_client.post(
            button(JobFactory(running=True), "cancel"), follow=True
        )
        (message,) = response.context["messages"]
        assert int(message.level) == levels.SUCCESS

    def test_all_skipped(self, admin_client: Client):
        assert self.level(admin_client, JobFactory(running=True)) == levels.ERROR


def test_a_button_of_a_job_that_does_not_exist_is_not_found(admin_client: Client):
    missing = JobFactory.build()
    assert admin_client.post(button(missing, "retry")).status_code == 404
    assert admin_client.post(f"{LIST}0199/retry/").status_code == 404


def test_a_button_leads_back_to_the_list_as_it_was_filtered(admin_client: Client):
    job = JobFactory(dead=True)
    filters = "?_changelist_filters=status%3Ddead"
    response = admin_client.get(page(job) + filters)
    url = response.context["verbs"][0]["url"]
    assert url == button(job, "retry") + filters
    assert admin_client.post(url)["Location"] == page(job) + filters
