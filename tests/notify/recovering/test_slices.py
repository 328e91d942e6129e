"""Recoveries, run by the queue's own parts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from notify.models import (
    Notification,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookRecovery,
)
from notify.recovering import slices, steering
from tests.jobs.factories import JobFactory, ago
from tests.notify.factories import (
    AdminFactory,
    EndpointFactory,
    UserFactory,
    delivery_to,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("webhooks_on")]
QUEUE = "recovering"


@pytest.fixture
def endpoint() -> WebhookEndpoint:
    made: WebhookEndpoint = EndpointFactory(name="chat")
    return made


def begin(endpoint: WebhookEndpoint, *, per_minute: int = 60) -> WebhookRecovery:
    """A recovery whose jobs run by themselves, away from the deliveries'."""
    counted = steering.scope(endpoint, dt.timedelta(hours=1))
    return steering.begin(endpoint, counted, actor="alice", per_minute=per_minute)


def run_a_slice() -> None:
    """Run the jobs of recoveries that wait, once, and no delivery."""
    Job.objects.filter(type="webhook.recover").update(queue=QUEUE, run_at=Now())
    run_due_jobs(queues=[QUEUE])


def dead(endpoint: WebhookEndpoint, count: int) -> list[WebhookDelivery]:
    return [delivery_to(endpoint, dead=True) for _ in range(count)]


def statuses(deliveries: list[WebhookDelivery]) -> list[str]:
    found = Job.objects.in_bulk([delivery.pk for delivery in deliveries])
    return [found[delivery.pk].status for delivery in deliveries]


def state_of(recovery: WebhookRecovery) -> tuple[str, int, int]:
    recovery.refresh_from_db()
    return recovery.state, recovery.resent, recovery.skipped


def test_the_oldest_go_first_at_the_pace(endpoint: WebhookEndpoint):
    deliveries = dead(endpoint, 7)
    recovery = begin(endpoint, per_minute=36)

    run_a_slice()

    assert statuses(deliveries) == ["pending"] * 3 + ["dead"] * 4
    assert state_of(recovery) == ("running", 3, 0)
    following = Job.objects.get(type="webhook.recover")
    wait = following.run_at - following.created_at
    assert abs(wait - dt.timedelta(seconds=5)) < dt.timedelta(seconds=1)


def test_a_slow_pace_is_one_at_a_time(endpoint: WebhookEndpoint):
    deliveries = dead(endpoint, 2)
    begin(endpoint, per_minute=1)

    run_a_slice()

    assert statuses(deliveries) == ["pending", "dead"]
    following = Job.objects.get(type="webhook.recover")
    assert following.run_at - following.created_at > dt.timedelta(seconds=55)


def test_it_ends_with_all_resent_once_and_tells_who_asked(endpoint: WebhookEndpoint):
    alice, _ = UserFactory(username="alice"), AdminFactory()
    deliveries = dead(endpoint, 7)
    late = delivery_to(endpoint, dead=True, completed_at=ago(hours=2))
    recovery = begin(endpoint, per_minute=60)

    for _ in range(3):
        run_a_slice()

    assert state_of(recovery) == ("finished", 7, 0)
    assert statuses([*deliveries, late]) == ["pending"] * 7 + ["dead"]
    assert not Job.objects.filter(type="webhook.recover").exists()
    told = Notification.objects.get()
    assert (told.user, told.topic) == (alice, "webhook.recovery_finished")
    assert told.title == "Recovery of chat finished: 7 resent"
    assert told.link == f"/admin/notify/webhookrecovery/{recovery.pk}/change/"


def test_where_no_user_asked_the_admins_are_told(endpoint: WebhookEndpoint):
    admins = AdminFactory.create_batch(2)
    dead(endpoint, 1)
    begin(endpoint)

    for _ in range(2):
        run_a_slice()

    assert {told.user for told in Notification.objects.all()} == set(admins)


def test_what_cannot_be_resent_is_counted_and_passed_by(endpoint: WebhookEndpoint):
    taken, other = dead(endpoint, 2)
    Job.objects.filter(pk=taken.pk).update(unique_key="k")
    JobFactory(unique_key="k", later=True)
    recovery = begin(endpoint)

    for _ in range(2):
        run_a_slice()

    assert state_of(recovery) == ("finished", 1, 1)
    assert statuses([taken, other]) == ["dead", "pending"]


def test_what_dies_again_is_not_resent_for_ever(endpoint: WebhookEndpoint):
    [delivery] = dead(endpoint, 1)
    recovery = begin(endpoint)
    run_a_slice()
    Job.objects.filter(pk=delivery.pk).update(status=Status.DEAD, completed_at=Now())

    run_a_slice()

    assert state_of(recovery) == ("finished", 1, 0)
    assert statuses([delivery]) == ["dead"]


@pytest.mark.parametrize("turn", [steering.pause, steering.cancel])
def test_one_that_was_paused_or_cancelled_does_nothing(
    endpoint: WebhookEndpoint, turn: Callable[..., Any]
):
    deliveries = dead(endpoint, 2)
    recovery = begin(endpoint)
    turn([recovery.pk], actor="alice")

    run_a_slice()

    assert statuses(deliveries) == ["dead", "dead"]
    assert not Job.objects.filter(type="webhook.recover").exists()


def test_pausing_and_resuming_at_once_does_not_double_the_pace(
    endpoint: WebhookEndpoint,
):
    deliveries = dead(endpoint, 4)
    recovery = begin(endpoint, per_minute=12)
    steering.pause([recovery.pk], actor="alice")
    steering.resume([recovery.pk], actor="alice")
    assert Job.objects.filter(type="webhook.recover").count() == 2

    run_a_slice()

    assert statuses(deliveries) == ["pending", "dead", "dead", "dead"]
    assert Job.objects.filter(type="webhook.recover").count() == 1


def test_it_goes_on_behind_what_it_has_resent(endpoint: WebhookEndpoint):
    deliveries = dead(endpoint, 3)
    recovery = begin(endpoint, per_minute=12)
    run_a_slice()
    steering.pause([recovery.pk], actor="alice")
    steering.resume([recovery.pk], actor="alice")

    run_a_slice()

    assert statuses(deliveries) == ["pending", "pending", "dead"]
    assert state_of(recovery) == ("running", 2, 0)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ({"enabled": False}, "the endpoint is disabled"),
        (
            {"breaker": "open", "breaker_reason": "HTTP 503"},
            "the endpoint's breaker is open: HTTP 503",
        ),
    ],
    ids=["disabled", "open"],
)
def test_while_the_endpoint_takes_nothing_it_waits_and_says_why(
    endpoint: WebhookEndpoint, trouble: dict[str, Any], reason: str
):
    deliveries = dead(endpoint, 2)
    delivery_to(endpoint, later=True)
    recovery = begin(endpoint)
    WebhookEndpoint.objects.update(**trouble)

    run_a_slice()

    assert statuses(deliveries) == ["dead", "dead"]
    recovery.refresh_from_db()
    assert (recovery.state, recovery.reason) == ("running", reason)
    following = Job.objects.get(type="webhook.recover")
    assert following.run_at - following.created_at > dt.timedelta(seconds=25)

    WebhookEndpoint.objects.update(enabled=True, breaker="closed")
    run_a_slice()
    assert statuses(deliveries) == ["pending", "pending"]
    recovery.refresh_from_db()
    assert recovery.reason == ""


def test_while_webhooks_are_switched_off_it_waits(
    endpoint: WebhookEndpoint, settings: Settings
):
    deliveries = dead(endpoint, 1)
    recovery = begin(endpoint)
    settings.NOTIFY_WEBHOOK_ENABLED = False

    run_a_slice()

    assert statuses(deliveries) == ["dead"]
    recovery.refresh_from_db()
    assert recovery.reason == "NOTIFY_WEBHOOK_ENABLED is false"


def test_a_breaker_that_has_nothing_to_try_with_is_given_one(
    endpoint: WebhookEndpoint,
):
    deliveries = dead(endpoint, 3)
    begin(endpoint)
    WebhookEndpoint.objects.update(breaker="open")

    run_a_slice()
    run_a_slice()

    assert statuses(deliveries) == ["pending", "dead", "dead"]


def test_a_fault_within_a_slice_undoes_all_of_it(
    endpoint: WebhookEndpoint, monkeypatch: pytest.MonkeyPatch
):
    deliveries = dead(endpoint, 2)
    recovery = begin(endpoint)
    with monkeypatch.context() as patched:
        patched.setattr(slices, "enqueue_slice", lambda *_, **__: 1 / 0)
        run_a_slice()
    assert statuses(deliveries) == ["dead", "dead"]
    assert state_of(recovery) == ("running", 0, 0)

    for _ in range(2):
        run_a_slice()

    assert state_of(recovery) == ("finished", 2, 0)
