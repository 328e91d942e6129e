from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from notify.models import AuditEntry, Notification
from tests.workspaces.tasks.admin.desk import (
    HOSTILE,
    LIST,
    client_with,
    html,
    messages,
    operator,
    page,
)
from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    contest,
    entry,
    held,
    history,
    now,
    pass_and_work,
    pass_time,
    publish,
    reviewing,
)
from workspaces.tasks import actions, agents
from workspaces.tasks.models import Task
from workspaces.tasks.states import Status

pytestmark = pytest.mark.django_db

VERBS = ["accept", "reject", "pick_winner", "cancel", "reopen"]


def in_review(*entrants: str) -> Task:
    task = contest(*entrants)
    pass_and_work(10 * HOUR)
    return now(task)


def cancelled() -> Task:
    task = publish()
    actions.cancel(task.pk, by=agent("alice"))
    return now(task)


def buttons(client: Client, task: Task) -> list[str]:
    shown = html(client.get(page(task)))
    return [verb for verb in VERBS if f'href="{page(task, verb)}' in shown]


class TestButtons:
    @pytest.mark.parametrize(
        ("make", "verbs"),
        [
            (publish, ["cancel"]),
            (held, ["cancel"]),
            (reviewing, ["accept", "reject", "cancel"]),
            (lambda: in_review("bob"), ["reject", "pick_winner", "cancel"]),
            (cancelled, ["reopen"]),
        ],
        ids=["open", "held", "reviewing", "contest", "cancelled"],
    )
    def test_they_are_those_that_apply(
        self, make: Callable[[], Task], verbs: list[str]
    ):
        assert buttons(operator(), make()) == verbs

    def test_an_accepted_task_has_none(self):
        task = reviewing()
        actions.accept(task.pk, by=agent("alice"))
        assert buttons(operator(), task) == []

    def test_whoever_may_only_look_has_none(self):
        client = client_with("view_task")
        assert buttons(client, reviewing()) == []
        assert "cancel_selected" not in html(client.get(LIST))


class TestOne:
    def test_a_page_asks_first_and_changes_nothing(self):
        task = reviewing()
        asked = html(operator().get(page(task, "reject")))
        assert "in whose place you act" in asked
        assert 'name="reason"' in asked
        assert now(task).status == Status.REVIEWING

    def test_accept(self):
        task = reviewing()
        response = operator().post(
            page(task, "accept"), {"reason": "well done"}, follow=True
        )
        assert response.redirect_chain == [(page(task), 302)]
        assert messages(response) == [f"success: Task {task.pk} is accepted now."]
        assert now(task).status == Status.ACCEPTED
        assert task.events.latest("pk").actor == "olga (operator)"
        kept = AuditEntry.objects.get()
        assert (kept.actor, kept.action, kept.target) == (
            "olga",
            "task.accept",
            f"task:{task.pk}",
        )
        assert kept.data == {"status": "accepted", "reason": "well done"}

    def test_reject(self):
        task = reviewing()
        operator().post(page(task, "reject"), {"reason": "it does not sort"})
        assert now(task).status == Status.HELD
        assert entry(task, "bob").reason == "it does not sort"
        assert AuditEntry.objects.get().action == "task.reject"

    @pytest.mark.parametrize("reason", ["", "  ", "x" * 4_001, "a\x00b"])
    def test_a_rejection_without_a_usable_reason_is_asked_for_again(self, reason: str):
        task = reviewing()
        asked = html(operator().post(page(task, "reject"), {"reason": reason}))
        assert "errorlist" in asked
        assert now(task).status == Status.REVIEWING

    def test_pick_a_winner(self):
        task = in_review("bob", "carol")
        client, carols = operator(), entry(task, "carol")
        assert f"{carols.pk}: carol" in html(client.get(page(task, "pick_winner")))
        client.post(
            page(task, "pick_winner"), {"submission": carols.pk, "reason": "shorter"}
        )
        assert now(task).status == Status.ACCEPTED
        assert entry(task, "carol").decision == "accepted"
        assert entry(task, "bob").decision == "rejected"
        assert AuditEntry.objects.get().data == {
            "status": "accepted",
            "reason": "shorter",
            "submission_id": carols.pk,
        }

    @pytest.mark.parametrize("chosen", ["", "x", "0", "{foreign}"])
    def test_a_winner_is_one_of_the_entries(self, chosen: str):
        task, other = in_review("bob"), in_review("carol")
        foreign = entry(other, "carol").pk
        asked = operator().post(
            page(task, "pick_winner"), {"submission": chosen.format(foreign=foreign)}
        )
        assert "errorlist" in html(asked)
        assert now(task).status == Status.REVIEWING

    def test_cancel(self):
        task = held("bob")
        operator().post(page(task, "cancel"), {"reason": "not needed any more"})
        assert now(task).status == Status.CANCELLED
        told = Notification.objects.get(topic="task.cancelled", user__username="bob")
        assert "not needed any more" in told.body
        assert AuditEntry.objects.get().action == "task.cancel"

    def test_reopen(self):
        task = cancelled()
        operator().post(page(task, "reopen"))
        assert now(task).status == Status.OPEN
        assert AuditEntry.objects.get().action == "task.reopen"

    def test_what_came_too_late_is_a_warning_with_the_reason(self):
        task = reviewing()
        pass_time(7 * HOUR)
        response = operator().post(page(task, "reject"), {"reason": "no"}, follow=True)
        (told,) = messages(response)
        assert told.startswith(
            "warning: Nothing was done: too late to reject: review_until"
        )
        assert now(task).status == Status.REVIEWING
        assert not AuditEntry.objects.exists()

    def test_what_somebody_else_has_decided_is_a_warning(self):
        task = reviewing()
        actions.accept(task.pk, by=agent("alice"))
        response = operator().post(page(task, "reject"), {"reason": "no"}, follow=True)
        assert messages(response) == [
            "warning: Reject does not apply: the direct task is accepted."
        ]
        assert history(task)[-1] == "accept"

    def test_a_disabled_operator_is_told(self):
        client, task = operator(), reviewing()
        agents.switch(agents.of_user(User.objects.get(username="olga")), enabled=False)
        response = client.post(page(task, "accept"), follow=True)
        assert messages(response) == ["warning: Nothing was done: olga is disabled."]

    def test_a_task_that_does_not_exist(self):
        assert operator().post(f"{LIST}0/cancel/").status_code == 404

    @pytest.mark.parametrize("verb", VERBS)
    @pytest.mark.parametrize(
        "permissions",
        [(), ("view_task",), ("operate_task",), ("view_task", "view_job")],
    )
    def test_it_needs_the_permission(self, verb: str, permissions: tuple[str, ...]):
        task = cancelled() if verb == "reopen" else reviewing()
        client = client_with(*permissions)
        url = page(task, verb)
        assert client.get(url).status_code == 403
        assert client.post(url, {"reason": "x"}).status_code == 403
        assert now(task).status == task.status
        assert not AuditEntry.objects.exists()

    def test_without_a_token_nothing_is_done(self):
        task = held()
        client = Client(enforce_csrf_checks=True)
        client.force_login(User.objects.create_superuser("root"))
        assert client.post(page(task, "cancel")).status_code == 403
        assert now(task).status == Status.HELD

    def test_what_others_wrote_is_escaped_and_holds_no_credential(self):
        task = in_review("bob")
        secret = "https://user:SECRET@git.example/x"
        task.submissions.update(reference=f"{secret} {HOSTILE}")
        Task.objects.update(title=f"{secret} {HOSTILE}")
        shown = html(operator().get(page(task, "pick_winner")))
        assert "git.example/x" in shown
        assert "SECRET" not in shown
        assert HOSTILE not in shown


class TestSelected:
    def act(self, client: Client, action: str, tasks: list[Task], **more: str) -> Any:
        data = {
            "action": action,
            "_selected_action": [str(task.pk) for task in tasks],
            **more,
        }
        return client.post(f"{LIST}?status=open", data, follow=True)

    def test_it_asks_first(self):
        client, tasks = operator(), [publish(), publish()]
        asked = html(self.act(client, "cancel_selected", tasks))
        assert "Cancel: all 2" in asked
        assert {now(task).status for task in tasks} == {Status.OPEN}

    def test_cancel(self):
        client, tasks = operator(), [publish(), publish()]
        other = publish()
        response = self.act(
            client, "cancel_selected", tasks, confirmed="1", reason="not needed"
        )
        assert messages(response) == ["success: 2 cancelled"]
        assert {now(task).status for task in tasks} == {Status.CANCELLED}
        assert now(other).status == Status.OPEN
        assert AuditEntry.objects.filter(data__reason="not needed").count() == 2
        assert response.redirect_chain[-1][0] == f"{LIST}?status=open"

    def test_reopen(self):
        client, task = operator(), cancelled()
        data = {
            "action": "reopen_selected",
            "_selected_action": [str(task.pk)],
            "confirmed": "1",
        }
        assert messages(client.post(LIST, data, follow=True)) == ["success: 1 reopened"]
        assert now(task).status == Status.OPEN

    def test_all_that_match_the_filter_and_no_others(self):
        client = operator()
        first, second, other = publish(), publish(), held()
        asked = self.act(client, "cancel_selected", [first], select_across="1")
        assert "Cancel: all 2" in html(asked)
        self.act(client, "cancel_selected", [first], select_across="1", confirmed="1")
        assert now(first).status == now(second).status == Status.CANCELLED
        assert now(other).status == Status.HELD

    def test_a_reason_that_is_refused_is_asked_for_again(self):
        client, task = operator(), publish()
        asked = self.act(
            client, "cancel_selected", [task], confirmed="1", reason="x" * 4_001
        )
        assert "errorlist" in html(asked)
        assert now(task).status == Status.OPEN

    @pytest.mark.parametrize("action", ["cancel_selected", "reopen_selected"])
    def test_whoever_may_only_look_cannot(self, action: str):
        client = client_with("view_task")
        task = cancelled() if action == "reopen_selected" else publish()
        data = {
            "action": action,
            "_selected_action": [str(task.pk)],
            "confirmed": "1",
        }
        client.post(LIST, data)
        assert now(task).status == task.status
