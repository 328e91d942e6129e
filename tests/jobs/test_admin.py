from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from jobs import admin as jobs_admin
from jobs import pagination
from jobs.identifiers import uuid7
from jobs.models import Job
from tests.jobs.browsing import client_with
from tests.jobs.factories import AttemptFactory, JobFactory, WorkerProcessFactory

pytestmark = pytest.mark.django_db

HOSTILE = '<script>alert("x")</script>'
LIST = "/admin/jobs/job/"


def page(job: Job) -> str:
    return reverse("admin:jobs_job_change", args=[job.pk])


def rows(response: Any) -> list[Any]:
    return [job.pk for job in response.context["cl"].result_list]


class TestList:
    def test_the_newest_come_first(self, admin_client: Client):
        first, second = JobFactory(), JobFactory(dead=True)
        assert rows(admin_client.get(LIST)) == [second.pk, first.pk]

    def test_it_has_what_operators_look_for(self, admin_client: Client):
        JobFactory(dead=True, ref_id="task-7", last_error="OSError: full\nmore")
        html = admin_client.get(LIST).content.decode()
        assert '<span class="state state-bad">dead</span>' in html
        assert "task-7" in html
        assert ">5/5<" in html
        assert ">OSError: full</span>" in html

    def test_those_that_were_asked_to_stop_are_found(self, admin_client: Client):
        JobFactory(running=True)
        JobFactory(cancelled=True, cancel_requested_at=Now())
        asked = JobFactory(running=True, cancel_requested_at=Now())
        response = admin_client.get(LIST, {"stop": "asked"})
        assert rows(response) == [asked.pk]
        assert ">asked to stop</span>" in response.content.decode()

    @pytest.mark.parametrize("name", ["status", "type", "queue"])
    def test_filters(self, admin_client: Client, name: str):
        wanted = JobFactory(cancelled=True, type="test.x", queue="q")
        JobFactory()
        value = {"status": "cancelled", "type": "test.x", "queue": "q"}[name]
        assert rows(admin_client.get(LIST, {name: value})) == [wanted.pk]

    @pytest.mark.parametrize("lookup", ["last_error__regex", "payload__a", "ref_id"])
    def test_other_lookups_are_refused(self, admin_client: Client, lookup: str):
        assert admin_client.get(LIST, {lookup: "x"}).status_code == 400

    def test_search_by_id_and_by_ref_id(self, admin_client: Client):
        first, second = JobFactory(ref_id="task-7"), JobFactory()
        JobFactory()
        assert rows(admin_client.get(LIST, {"q": " task-7 "})) == [first.pk]
        assert rows(admin_client.get(LIST, {"q": str(second.pk)})) == [second.pk]
        assert rows(admin_client.get(LIST, {"q": str(second.pk).upper()})) == [
            second.pk
        ]

    @pytest.mark.parametrize("term", ["0199-not-an-id", "task-", "'", "%", "x" * 5_000])
    def test_a_search_that_finds_nothing_is_an_empty_list(
        self, admin_client: Client, term: str
    ):
        JobFactory(ref_id="task-7")
        assert rows(admin_client.get(LIST, {"q": term})) == []

    def test_a_search_for_a_nul_character_is_survived(self, admin_client: Client):
        assert admin_client.get(LIST, {"q": "a\x00b"}).status_code == 200

    def test_search_uses_the_indexes(self):
        model_admin = admin.site.get_model_admin(Job)
        jobs, _ = model_admin.get_search_results(
            None,  # type: ignore[arg-type] # it looks at the term only
            Job.objects.all(),
            str(uuid7()),
        )
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
        plan = jobs.explain()
        assert "jobs_pkey" in plan
        assert "jobs_ref_id" in plan

    def test_it_counts_no_further_than_it_must_and_reads_no_payload(
        self, admin_client: Client
    ):
        JobFactory.create_batch(3, dead=True)
        with CaptureQueriesContext(connection) as queries:
            admin_client.get(LIST, {"status": "dead"})
        statements = [query["sql"] for query in queries if '"jobs"' in query["sql"]]
        assert len(queries) <= 8
        assert len(statements) == 2
        assert [s for s in statements if "COUNT" in s and "LIMIT" not in s] == []
        assert [s for s in statements if '"payload"' in s] == []

    def test_it_says_that_there_is_more_than_it_counts(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(pagination, "COUNTED", 2)
        JobFactory.create_batch(3)
        html = admin_client.get(LIST).content.decode()
        assert "There are 2 or more; the pages go no further." in html

    def test_what_others_wrote_is_escaped(self, admin_client: Client):
        JobFactory(dead=True, type=HOSTILE, ref_id=HOSTILE, last_error=HOSTILE)
        WorkerProcessFactory(queues=[HOSTILE])
        assert HOSTILE not in admin_client.get(LIST, {"type": HOSTILE}).content.decode()


class TestPage:
    def test_it_has_all_that_is_known(self, admin_client: Client):
        job = JobFactory(
            dead=True, ref_id="task-7", payload={"a": 1, "token": "s3cret"}, queue="q"
        )
        AttemptFactory(job=job, error="OSError: full", traceback="Traceback: in x")
        html = admin_client.get(page(job)).content.decode()
        assert "&quot;a&quot;: 1" in html
        assert "s3cret" not in html
        assert f'href="{LIST}?q=task-7"' in html
        assert "OSError: full" in html
        assert "<details><summary>Traceback</summary>" in html
        assert "Traceback: in x" in html

    def test_what_others_wrote_is_escaped(self, admin_client: Client):
        job = JobFactory(
            dead=True,
            type=HOSTILE,
            ref_id=HOSTILE,
            last_error=HOSTILE,
            payload={HOSTILE: HOSTILE},
            unique_key=HOSTILE,
        )
        AttemptFactory(job=job, error=HOSTILE, traceback=HOSTILE, worker=HOSTILE)
        html = admin_client.get(page(job)).content.decode()
        assert HOSTILE not in html
        assert "&lt;script&gt;" in html

    def test_a_payload_that_python_cannot_read_is_shown(self, admin_client: Client):
        job = JobFactory()
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE jobs SET payload ="
                " ('{\"a\": ' || repeat('[', 9000) || repeat(']', 9000) || '}')::jsonb"
            )
        assert "[[[[" in admin_client.get(page(job)).content.decode()

    def test_the_newest_attempts_are_shown(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(jobs_admin, "ATTEMPTS_SHOWN", 2)
        job = JobFactory(dead=True)
        for number in (1, 2, 3):
            AttemptFactory(job=job, error=f"error {number}")
        html = admin_client.get(page(job)).content.decode()
        assert html.index("error 3") < html.index("error 2")
        assert "error 1" not in html

    def test_it_says_since_when_a_running_job_is_asked_to_stop(
        self, admin_client: Client
    ):
        asked_at = dt.datetime(2031, 2, 3, 14, 3, tzinfo=dt.UTC)
        job = JobFactory(running=True, cancel_requested_at=asked_at)
        html = admin_client.get(page(job)).content.decode()
        assert '<span class="state state-busy">asked to stop</span>' in html
        shown = html.partition("Cancel requested at")[2].partition("</div>")[0]
        assert "2031-02-03 14:03:00" in shown

    def test_one_that_has_ended_is_not_asked_any_more(self, admin_client: Client):
        job = JobFactory(cancelled=True, cancel_requested_at=Now())
        html = admin_client.get(page(job)).content.decode()
        assert ">asked to stop</span>" not in html

    def test_whoever_may_only_view_jobs_sees_their_attempts(self):
        attempt = AttemptFactory(error="OSError: full")
        html = client_with("view_job").get(page(attempt.job)).content.decode()
        assert "OSError: full" in html
        assert (
            "<button"
            not in html.partition('id="content-main"')[2].partition("footer")[0]
        )

    @pytest.mark.parametrize(
        ("state", "verbs"),
        [
            ({}, ["cancel"]),
            ({"later": True}, ["run_now", "cancel"]),
            ({"running": True}, ["cancel"]),
            ({"running": True, "cancel_requested_at": Now()}, []),
            ({"completed": True}, []),
            ({"dead": True}, ["retry"]),
            ({"cancelled": True}, ["retry"]),
        ],
        ids=["due", "later", "running", "asked", "completed", "dead", "cancelled"],
    )
    def test_the_buttons_are_those_that_apply(
        self, admin_client: Client, state: dict[str, bool], verbs: list[str]
    ):
        response = admin_client.get(page(JobFactory(**state)))
        assert [verb["name"] for verb in response.context["verbs"]] == verbs

    @pytest.mark.parametrize(
        "missing", ["0199", "01999999-0000-7000-8000-000000000000"]
    )
    def test_a_job_that_does_not_exist_leads_home(
        self, admin_client: Client, missing: str
    ):
        response = admin_client.get(f"{LIST}{missing}/change/", follow=True)
        assert response.redirect_chain[-1][0] == "/admin/"


class TestByHand:
    """Jobs are not added, edited or deleted."""

    def test_add(self, admin_client: Client):
        assert admin_client.get(f"{LIST}add/").status_code == 403

    def test_edit(self, admin_client: Client):
        job = JobFactory()
        assert admin_client.post(page(job), {"type": "x"}).status_code == 403
        job.refresh_from_db()
        assert job.type == "test.noop"

    def test_delete(self, admin_client: Client):
        job = JobFactory()
        url = f"{LIST}{job.pk}/delete/"
        assert admin_client.post(url, {"post": "yes"}).status_code == 403
        assert "delete_selected" not in admin_client.get(LIST).content.decode()
