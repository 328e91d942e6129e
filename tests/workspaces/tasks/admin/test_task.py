from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from jobs import pagination
from jobs.models import Job
from tests.workspaces.factories import WorkspaceFactory
from tests.workspaces.tasks.admin.desk import (
    HOSTILE,
    LIST,
    client_with,
    html,
    page,
)
from tests.workspaces.tasks.market import (
    HOUR,
    MINUTE,
    agent,
    contest,
    entry,
    held,
    now,
    pass_and_work,
    pass_time,
    publish,
    reviewing,
)
from workspaces.tasks import actions
from workspaces.tasks.models import Submission, Task, TaskEvent

pytestmark = pytest.mark.django_db


def rows(response: Any) -> list[int]:
    return [task.pk for task in response.context["cl"].result_list]


class TestList:
    def test_the_newest_come_first(self, admin_client: Client):
        first, second = publish(), held()
        assert rows(admin_client.get(LIST)) == [second.pk, first.pk]

    def test_it_says_who_has_it_and_what_happens_next(self, admin_client: Client):
        held("bob", title="Sort the lists", workspace=WorkspaceFactory(name="demo"))
        shown = html(admin_client.get(LIST))
        assert '<span class="state state-busy">held</span>' in shown
        for text in ("Sort the lists", ">alice<", ">bob<", ">demo<"):
            assert text in shown
        assert "in 7h 59m <code>hold_timeout</code>" in shown

    def test_the_deadline_that_comes_first_is_the_next(self, admin_client: Client):
        held(checkpoint_every=HOUR)
        assert "<code>checkpoint_warn</code>" in html(admin_client.get(LIST))

    def test_a_transfers_end_is_a_deadline_too(self, admin_client: Client):
        task = held(hold_for=30 * MINUTE)
        actions.offer_transfer(task.pk, by=agent("bob"), to=_agent("carol"))
        pass_time(HOUR)
        shown = html(admin_client.get(LIST))
        assert "overdue</span> since 30m" in shown

    def test_what_has_ended_has_no_deadline(self, admin_client: Client):
        task = publish()
        actions.cancel(task.pk, by=agent("alice"))
        shown = html(admin_client.get(LIST))
        assert '<td class="field-next_deadline">-</td>' in shown

    @pytest.mark.parametrize("term", ["SORT the", " {pk} "])
    def test_search_by_id_and_by_title(self, admin_client: Client, term: str):
        task = publish(title="Sort the lists")
        publish(title="Other")
        found = admin_client.get(LIST, {"q": term.format(pk=task.pk)})
        assert rows(found) == [task.pk]

    @pytest.mark.parametrize(
        "term", ["9" * 30, "9" * 5_000, "-1", "٣", "%", "'", "x" * 5_000]
    )
    def test_a_search_that_finds_nothing_is_an_empty_list(
        self, admin_client: Client, term: str
    ):
        publish()
        assert rows(admin_client.get(LIST, {"q": term})) == []

    def test_its_id_in_digits_of_another_script_is_none(self, admin_client: Client):
        term = str(publish().pk).translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩"))
        assert rows(admin_client.get(LIST, {"q": term})) == []

    def test_a_search_for_a_nul_character_is_survived(self, admin_client: Client):
        assert admin_client.get(LIST, {"q": "a\x00b"}).status_code == 200

    @pytest.mark.parametrize(
        "lookup", ["title__regex", "description__contains", "publisher__user__email"]
    )
    def test_other_lookups_are_refused(self, admin_client: Client, lookup: str):
        assert admin_client.get(LIST, {lookup: "x"}).status_code == 400

    def test_more_tasks_need_no_more_queries(self, admin_client: Client):
        workspace = WorkspaceFactory()
        held("bob", workspace=workspace)
        admin_client.get(LIST)  # what is looked up once in a process
        with CaptureQueriesContext(connection) as few:
            admin_client.get(LIST)
        for number in range(6):
            publish(f"alice{number}")
            task = held(f"bob{number}", workspace=workspace)
            actions.offer_transfer(
                task.pk, by=agent(f"bob{number}"), to=_agent("service:bot")
            )
        with CaptureQueriesContext(connection) as many:
            admin_client.get(LIST)
        assert len(many) == len(few) <= 9

    def test_it_counts_no_further_than_it_must_and_reads_no_description(
        self, admin_client: Client
    ):
        publish(description="long")
        with CaptureQueriesContext(connection) as queries:
            admin_client.get(LIST)
        statements = [q["sql"] for q in queries if 'FROM "tasks"' in q["sql"]]
        assert len(statements) == 2
        assert [s for s in statements if "COUNT" in s and "LIMIT" not in s] == []
        assert [s for s in statements if '"description"' in s] == []

    def test_it_says_that_there_is_more_than_it_counts(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(pagination, "COUNTED", 2)
        for _ in range(3):
            publish()
        shown = html(admin_client.get(LIST))
        assert "There are 2 or more; the pages go no further." in shown


class TestPage:
    def test_it_has_all_that_is_known(self, admin_client: Client):
        task = held(
            "bob",
            description="In ascending order.",
            checklist=["Tests pass", "Docs say so"],
            checkpoint_every=HOUR,
            final_miss=3,
            returns_allowed=2,
            workspace=WorkspaceFactory(name="demo"),
        )
        actions.checkpoint(task.pk, by=agent("bob"), note="half of it is done")
        actions.offer_transfer(task.pk, by=agent("bob"), to=_agent("service:bot"))
        actions.submit(
            task.pk, by=agent("bob"), text="It sorts.", reference="acw/sort", done=[1]
        )
        actions.reject(task.pk, by=agent("alice"), reason="It does not sort")
        shown = html(admin_client.get(page(task)))
        for text in (
            f"task {task.pk}: Sort the lists",
            "In ascending order.",
            "<li>Tests pass</li>",
            "0; number 3 costs the task",
            "0 of 2 times",
            "half of it is done",
            "service:bot",
            "It sorts.",
            "acw/sort",
            "Claims items 1 of 2.",
            "It does not sort",
            ">demo</a>",
        ):
            assert text in shown

    def test_a_deadline_leads_to_its_job(self, admin_client: Client):
        task = held(returns_allowed=0)
        job = Job.objects.get(type="hold_timeout", ref_id=str(task.pk))
        shown = html(admin_client.get(page(task)))
        assert "<code>hold_timeout</code>" in shown
        assert "Task closed: closed" in shown
        assert f'href="/admin/jobs/job/{job.pk}/change/"' in shown

    def test_whoever_may_not_see_jobs_sees_only_how_they_are(self):
        task = held()
        shown = html(client_with("view_task").get(page(task)))
        assert '<span class="state">pending</span>' in shown
        assert "/admin/jobs/job/" not in shown

    def test_a_deadline_without_a_job_is_named(self, admin_client: Client):
        task = held()
        Job.objects.filter(type="hold_timeout").delete()
        shown = html(admin_client.get(page(task)))
        assert '<span class="state state-bad">missing</span>' in shown
        assert "no job is there for this deadline" in shown

    @pytest.mark.parametrize("status", ["cancelled", "completed"])
    def test_a_job_that_does_nothing_more_is_named(
        self, admin_client: Client, status: str
    ):
        task = held()
        Job.objects.filter(type="hold_timeout").update(
            status=status, completed_at=task.created_at
        )
        shown = html(admin_client.get(page(task)))
        assert f"its job is {status}, and no other is there" in shown

    def test_the_job_of_a_former_deadline_is_not_taken_for_it(
        self, admin_client: Client
    ):
        task = held()
        Task.objects.update(hold_until=F("hold_until") + HOUR)
        assert Job.objects.filter(type="hold_timeout").exists()
        assert "no job is there" in html(admin_client.get(page(task)))

    def test_a_dead_job_is_named_with_what_it_died_of(self, admin_client: Client):
        task = contest("bob")
        pass_and_work(10 * HOUR)
        for _ in range(5):
            pass_and_work(6 * HOUR)
        shown = html(admin_client.get(page(task)))
        assert '<span class="state state-bad">dead</span>' in shown
        assert "overdue" in shown
        assert "needs a judge, and none is configured" in shown

    def test_the_history_is_a_timeline_newest_first(self, admin_client: Client):
        task = contest("bob", "carol")
        pass_and_work(10 * HOUR)
        actions.pick_winner(
            task.pk,
            by=agent("alice"),
            submission=entry(task, "carol").pk,
            reason="It is the shorter one",
        )
        shown = html(admin_client.get(page(task)))
        history = shown.partition('<ol class="timeline">')[2]
        assert history.index("picked the winner") < history.index("the contest closed")
        assert history.index("the contest closed") < history.index("published it")
        moved = '<span class="state state-busy">reviewing</span> <span aria-hidden="true">&rarr;</span><span class="visually-hidden"> to </span> <span class="state state-good">accepted</span>'
        assert moved in history
        assert "It is the shorter one" in history
        assert "<dt>winner</dt>" in history
        assert "&quot;winner&quot;" not in history

    def test_a_long_text_is_folded(self, admin_client: Client):
        task = reviewing()
        Submission.objects.update(text="First line\n" + "x" * 1_000)
        shown = html(admin_client.get(page(task)))
        assert "<details><summary>First line" in shown

    def test_what_others_wrote_is_escaped_and_holds_no_credential(
        self, admin_client: Client
    ):
        secret = "https://user:SECRET@git.example/x?token=SECRET"
        text = f"{HOSTILE} \x1b[31m \x07 \u202e {secret}"
        task = held("bob", description="d", checklist=["c"])
        actions.checkpoint(task.pk, by=agent("bob"), note=text)
        actions.offer_transfer(
            task.pk, by=agent("bob"), to=_agent("carol"), note=f"{HOSTILE} {secret}"
        )
        actions.submit(task.pk, by=agent("bob"), text=text, reference=secret)
        actions.reject(task.pk, by=agent("alice"), reason=text)
        Task.objects.update(
            title=f"{secret} {HOSTILE}", description=text, checklist=[text]
        )
        Job.objects.update(last_error=text)
        TaskEvent.objects.create(
            task=task,
            action=HOSTILE[:20],
            target="held",
            actor=HOSTILE,
            data={HOSTILE: {HOSTILE: secret}},
            created_at=task.created_at,
        )
        for url in (page(task), LIST):
            shown = html(admin_client.get(url))
            assert "git.example/x" in shown
            for hostile in ("SECRET", "<script>alert", "\x1b", "\x07", "\u202e"):
                assert hostile not in shown

    def test_a_longer_history_needs_no_more_queries(self, admin_client: Client):
        task = held("bob")
        actions.submit(task.pk, by=agent("bob"), text="done")
        actions.reject(task.pk, by=agent("alice"), reason="no")
        actions.checkpoint(task.pk, by=agent("bob"))
        admin_client.get(page(task))  # what is looked up once in a process
        with CaptureQueriesContext(connection) as few:
            admin_client.get(page(task))
        for _ in range(5):
            actions.submit(task.pk, by=agent("bob"), text="done")
            actions.reject(task.pk, by=agent("alice"), reason="no")
            actions.checkpoint(task.pk, by=agent("bob"))
        with CaptureQueriesContext(connection) as many:
            admin_client.get(page(task))
        assert len(many) == len(few) <= 16

    @pytest.mark.parametrize("missing", ["0", "x", "9" * 30])
    def test_a_task_that_does_not_exist_leads_home(
        self, admin_client: Client, missing: str
    ):
        response = admin_client.get(f"{LIST}{missing}/change/", follow=True)
        assert response.redirect_chain[-1][0] == "/admin/"


class TestByHand:
    """Tasks are not added, edited or deleted."""

    def test_add(self, admin_client: Client):
        assert admin_client.get(f"{LIST}add/").status_code == 403

    def test_edit(self, admin_client: Client):
        task = publish()
        post = admin_client.post(page(task), {"title": "x", "status": "accepted"})
        assert post.status_code == 403
        assert now(task).title == "Sort the lists"

    def test_delete(self, admin_client: Client):
        task = publish()
        post = admin_client.post(page(task, "delete"), {"post": "yes"})
        assert post.status_code == 403
        assert "delete_selected" not in html(admin_client.get(LIST))


@pytest.mark.parametrize("permissions", [(), ("view_job",), ("operate_task",)])
def test_whoever_may_not_look_at_tasks_sees_none(permissions: tuple[str, ...]):
    task = publish()
    client = client_with(*permissions)
    assert client.get(LIST).status_code == 403
    assert client.get(page(task)).status_code == 403


def test_a_stranger_is_asked_to_log_in(client: Client):
    assert "/login/" in client.get(page(publish()))["Location"]


def _agent(name: str) -> Any:
    return agent(name).agent
