from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from jobs.models import Job
from jobs.testing import PATIENCE
from notify.models import Notification, WebhookEndpoint
from tests.workspaces.factories import AdminFactory
from tests.workspaces.tasks.market import (
    HOUR,
    agent,
    held,
    pass_and_work,
    publish,
    reviewing,
)
from tests.workspaces.tasks.test_settled import (
    CommitsAtTheFirstWait,
    change_under_way,
)
from workspaces.tasks import actions, report, settled, waiting
from workspaces.tasks.models import Task, TaskEvent, TaskReport
from workspaces.tasks.states import Action

pytestmark = pytest.mark.django_db


def tick(stop: threading.Event | None = None) -> dict[str, int]:
    return report.report(stop or threading.Event())


def reports() -> list[Notification]:
    return list(Notification.objects.filter(topic="task.report").order_by("pk"))


def end(task: Task) -> None:
    actions.cancel(task.pk, by=agent("alice"))


def test_where_nothing_is_there_is_no_report():
    AdminFactory()
    assert tick() == {"reported": 0, "events": 0, "live": 0}
    assert reports() == []
    assert not TaskReport.objects.exists()


def test_it_is_told_to_every_admin_in_words(caplog: pytest.LogCaptureFixture):
    AdminFactory.create_batch(2)
    held(returns_allowed=0)
    pass_and_work(8 * HOUR)
    reviewing()
    publish()
    with caplog.at_level(logging.INFO, "workspaces.tasks"):
        assert tick() == {"reported": 1, "events": 7, "live": 2}
    first, second = reports()
    assert first.user != second.user
    assert first.title == "Tasks: daily report: 7 things done, 2 tasks under way"
    assert first.body.splitlines()[:7] == [
        "So far:",
        "  3 published",
        "  2 taken",
        "  1 lost by their holders, whose time ran out",
        "  1 submissions",
        "",
        "Now:",
    ]
    assert first.data["happened"] == {
        "publish": 3,
        "take": 2,
        "hold_timeout": 1,
        "submit": 1,
    }
    assert "alice: holds 0, has 1 to decide" in first.body
    (record,) = (r for r in caplog.records if r.message == "task.reported")
    assert vars(record)["events"] == 7


def test_what_is_reported_is_not_reported_again():
    AdminFactory()
    task = publish()
    assert tick()["events"] == 1
    end(task)
    assert tick()["events"] == 1
    assert tick() == {"reported": 0, "events": 0, "live": 0}
    first, second = reports()
    assert first.data["happened"] == {"publish": 1}
    assert second.data["happened"] == {"cancel": 1}
    assert second.body.startswith(f"Since the report of {second.data['since']}:")


def test_while_something_waits_it_is_reported_though_nothing_happened():
    AdminFactory()
    publish()
    tick()
    assert tick() == {"reported": 1, "events": 0, "live": 1}
    assert reports()[-1].body.splitlines()[1] == "  nothing"
    assert TaskReport.objects.count() == 1


def test_the_overdue_are_in_the_title():
    AdminFactory()
    task = publish()
    Task.objects.filter(pk=task.pk).update(open_until=task.created_at - HOUR)
    tick()
    assert reports()[0].title.endswith("1 tasks under way, 1 overdue")


def test_receivers_get_it_as_data(settings: Any):
    settings.NOTIFY_WEBHOOK_ENABLED = True
    WebhookEndpoint.objects.create(
        name="x", url="https://hooks.example/", topics=["task.report"]
    )
    publish()
    tick()
    (job,) = Job.objects.filter(type="webhook.deliver")
    assert '"happened":{"publish":1}' in job.payload["body"]
    assert '"waiting":{"open":{"tasks":1,' in job.payload["body"]


def test_without_an_admin_nothing_is_lost_for_receivers():
    publish()
    assert tick()["reported"] == 1
    assert reports() == []
    assert TaskReport.objects.get().happened == {"publish": 1}


def test_every_action_has_its_words():
    assert {str(action) for action in Action} <= {str(a) for a in report.HAPPENED}
    assert len(set(report.HAPPENED.values())) == len(report.HAPPENED)


def test_an_action_without_words_is_counted_all_the_same():
    AdminFactory()
    task = publish()
    TaskEvent.objects.filter(task=task).update(action="from_afar")
    assert tick()["events"] == 1
    assert "  1 from_afar" in reports()[0].body


def test_the_windows_join_without_a_gap():
    for _ in range(3):
        publish()
        tick()
    windows = list(
        TaskReport.objects.order_by("pk").values_list("after_event", "upto_event")
    )
    assert windows[0][0] == 0
    assert [w[0] for w in windows[1:]] == [w[1] for w in windows[:-1]]
    assert sum(sum(r.happened.values()) for r in TaskReport.objects.all()) == 3


def test_a_stop_before_it_is_known_what_to_count_reports_nothing(
    monkeypatch: pytest.MonkeyPatch,
):
    publish()
    monkeypatch.setattr(settled, "last_event", lambda _: None)
    assert tick() == {"reported": 0, "events": 0, "live": 0}
    assert not TaskReport.objects.exists()


def test_where_telling_fails_nothing_counts_as_reported(
    monkeypatch: pytest.MonkeyPatch,
):
    publish()

    def failing(_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(report, "dispatch", failing)
    with pytest.raises(RuntimeError, match="no"):
        tick()
    monkeypatch.undo()
    assert tick()["events"] == 1


@pytest.mark.django_db(transaction=True)
def test_a_tick_beside_another_reports_nothing_twice(monkeypatch: pytest.MonkeyPatch):
    AdminFactory()
    publish()
    ask = waiting.waiting
    counts: list[dict[str, int]] = []

    def other() -> None:
        try:
            counts.append(tick())
        finally:
            connections.close_all()

    def beside() -> Any:
        # This tick knows where the last report ends, and has not written its own.
        monkeypatch.setattr(waiting, "waiting", ask)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(PATIENCE)
        return ask()

    monkeypatch.setattr(waiting, "waiting", beside)
    assert tick() == {"reported": 0, "events": 0, "live": 0}
    assert counts == [{"reported": 1, "events": 1, "live": 1}]
    assert len(reports()) == 1
    assert TaskReport.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_event_whose_transaction_ends_after_later_ones_is_counted_once():
    User.objects.create(username="root", is_superuser=True)
    task = publish()
    agent("bob")
    with change_under_way(task.pk) as commit:
        publish()  # has a later id, and is there before
        assert tick(CommitsAtTheFirstWait(commit))["events"] == 3
    assert tick()["events"] == 0
    assert TaskReport.objects.get().happened == {"publish": 2, "take": 1}


@pytest.mark.django_db(transaction=True)
def test_reports_under_fire_count_each_event_once():
    def work(name: str) -> None:
        try:
            for _ in range(15):
                end(publish(name))
        finally:
            connections.close_all()

    User.objects.create(username="root", is_superuser=True)
    for name in ("alice", "bob", "carol"):
        agent(name)
    threads = [
        threading.Thread(target=work, args=[name]) for name in ("alice", "bob", "carol")
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        tick()
    for thread in threads:
        thread.join(PATIENCE)
    tick()
    total: dict[str, int] = {}
    for row in TaskReport.objects.all():
        for action, n in row.happened.items():
            total[action] = total.get(action, 0) + n
    assert total["publish"] == 45
    assert sum(total.values()) == TaskEvent.objects.count()
