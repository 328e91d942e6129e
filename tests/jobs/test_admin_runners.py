from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs.models import RunnerState, WorkerProcess
from tests.jobs.auditing import recorded_audit
from tests.jobs.browsing import USERNAME, client_with, messages
from tests.jobs.factories import RunnerStateFactory, WorkerProcessFactory, ago

pytestmark = pytest.mark.django_db

HOSTILE = '<script>alert("x")</script>'
RUNNERS = "/admin/jobs/runnerstate/"
WORKERS = "/admin/jobs/workerprocess/"


def page(row: RunnerState | WorkerProcess) -> str:
    name = f"admin:jobs_{row._meta.model_name}_change"
    return reverse(name, args=[str(row.pk).replace("_", "_5F")])


def button(state: RunnerState) -> str:
    return page(state).replace("/change/", "/run_now/")


class TestRunners:
    def test_the_list_has_the_schedule(self, admin_client: Client):
        start = ago(minutes=3)
        RunnerStateFactory(
            last_started_at=start,
            last_finished_at=start + dt.timedelta(seconds=2),
            last_outcome="completed",
            last_summary={"returned": 3},
        )
        html = admin_client.get(RUNNERS).content.decode()
        assert "on schedule" in html
        assert '<td class="field-every">1m</td>' in html
        assert '<td class="field-took">2s</td>' in html
        assert "3 returned" in html

    def test_one_that_is_overdue_shows_so(self, admin_client: Client):
        RunnerStateFactory(next_run_at=ago(hours=2))
        html = admin_client.get(RUNNERS).content.decode()
        assert '<span class="state state-bad">overdue</span>' in html

    def test_one_that_failed_shows_its_error(self, admin_client: Client):
        RunnerStateFactory(last_outcome="failed", last_error="OSError: full")
        html = admin_client.get(RUNNERS).content.decode()
        assert '<span class="state state-bad">failed</span>' in html
        assert ">OSError: full</span>" in html

    def test_one_that_this_code_does_not_have_shows_so(self, admin_client: Client):
        state = RunnerStateFactory(name="gone")
        assert "unknown to this code" in admin_client.get(RUNNERS).content.decode()
        response = admin_client.get(page(state))
        assert response.status_code == 200
        assert response.context["verbs"] == []

    def test_the_list_takes_one_query_for_all(
        self, admin_client: Client, django_assert_max_num_queries: Any
    ):
        for name in ("job_reaper", "job_purge", "gone"):
            RunnerStateFactory(name=name)
        with django_assert_max_num_queries(5):
            admin_client.get(RUNNERS)

    def test_what_others_wrote_is_escaped(self, admin_client: Client):
        state = RunnerStateFactory(
            last_error=HOSTILE, last_worker=HOSTILE, last_summary={HOSTILE: HOSTILE}
        )
        for url in (RUNNERS, page(state)):
            assert HOSTILE not in admin_client.get(url).content.decode()

    def test_run_now_makes_the_tick_due_and_is_audited(self):
        state = RunnerStateFactory()
        client = client_with("view_runnerstate", "run_runnerstate")
        with recorded_audit() as told:
            response = client.post(button(state), follow=True)
        assert messages(response) == ["1 made due now"]
        was = state.next_run_at
        state.refresh_from_db()
        assert state.next_run_at < was
        (audit,) = told
        assert (audit["actor"], audit["action"], audit["target"]) == (
            USERNAME,
            "runner.run_now",
            "runner:job_reaper",
        )

    def test_run_now_from_the_list(self, admin_client: Client):
        RunnerStateFactory()
        form = {"action": "run_now", "_selected_action": ["job_reaper"]}
        response = admin_client.post(RUNNERS, form, follow=True)
        assert messages(response) == ["1 made due now"]

    def test_run_now_needs_its_permission(self):
        state = RunnerStateFactory()
        client = client_with("view_runnerstate", "run_now_job")
        assert client.get(page(state)).context["verbs"] == []
        assert client.post(button(state)).status_code == 403

    def test_run_now_is_posted(self, admin_client: Client):
        assert admin_client.get(button(RunnerStateFactory())).status_code == 405


class TestWorkers:
    def test_the_list_tells_the_living_from_the_lost(self, admin_client: Client):
        WorkerProcessFactory(name="w1")
        WorkerProcessFactory(name="w2", lost=True)
        html = admin_client.get(WORKERS).content.decode()
        assert '<span class="state state-good">alive</span>' in html
        assert '<span class="state state-bad">lost</span>' in html
        assert ">1h ago<" in html

    def test_one_that_has_stalled_names_what_in_it(self, admin_client: Client):
        process = WorkerProcessFactory(stalled=["acw-listener", HOSTILE])
        html = admin_client.get(WORKERS).content.decode()
        assert '<span class="state state-bad">stalled</span>' in html
        html = admin_client.get(page(process)).content.decode()
        assert "acw-listener, " in html
        assert HOSTILE not in html

    def test_the_page_has_queues_and_types(self, admin_client: Client):
        process = WorkerProcessFactory(queues=["default", "mail"], types=["test.noop"])
        html = admin_client.get(page(process)).content.decode()
        assert "default, mail" in html
        assert "test.noop" in html

    def test_what_others_wrote_is_escaped(self, admin_client: Client):
        process = WorkerProcessFactory(
            name=HOSTILE, host=HOSTILE, queues=[HOSTILE], types=[HOSTILE]
        )
        for url in (WORKERS, page(process)):
            assert HOSTILE not in admin_client.get(url).content.decode()


@pytest.mark.parametrize("url", [RUNNERS, WORKERS])
@pytest.mark.parametrize("what", ["add/", "x/delete/"])
def test_nothing_is_added_or_deleted_by_hand(admin_client: Client, url: str, what: str):
    RunnerStateFactory(name="x")
    assert admin_client.post(f"{url}{what}", {"post": "yes"}).status_code in (302, 403)
    assert RunnerState.objects.count() == 1
    assert WorkerProcess.objects.count() == 0


@pytest.mark.parametrize("model", ["job", "runnerstate", "workerprocess"])
def test_whoever_may_not_view_them_sees_nothing(model: str):
    assert client_with().get(f"/admin/jobs/{model}/").status_code == 403


@pytest.mark.parametrize("model", ["job", "runnerstate", "workerprocess"])
def test_viewing_alone_offers_no_action(model: str):
    response = client_with(f"view_{model}").get(f"/admin/jobs/{model}/")
    assert response.status_code == 200
    assert response.context["action_form"] is None
