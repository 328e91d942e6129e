from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.utils import timezone

from notify.models import Notification, WebhookAttempt, WebhookEndpoint
from tests.notify.factories import (
    TOPIC,
    AttemptFactory,
    EndpointFactory,
    NotificationFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db
NOW = timezone.now()
Verdict = WebhookAttempt.Verdict


def test_the_inbox_has_the_unread_first_then_the_newest():
    user = UserFactory()

    def told(hours: int, *, read: bool) -> Notification:
        ago = NOW - dt.timedelta(hours=hours)
        return NotificationFactory(
            user=user, created_at=ago, read_at=NOW if read else None
        )

    old_unread = told(9, read=False)
    new_read = told(1, read=True)
    new_unread = told(2, read=False)
    old_read = told(10, read=True)
    NotificationFactory()

    expected = [new_unread, old_unread, new_read, old_read]
    assert list(Notification.objects.of(user).inbox()) == expected


def test_the_inbox_is_read_in_the_order_of_its_index():
    first, second = UserFactory(), UserFactory()
    Notification.objects.bulk_create(
        Notification(user=user, topic=TOPIC, title="x", read_at=NOW if n % 2 else None)
        for user in (first, second)
        for n in range(3000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE notifications")

    plan = Notification.objects.of(first).inbox()[:25].explain()

    assert "notifications_inbox" in plan
    assert "Sort" not in plan


def test_marking_as_read_keeps_the_first_time():
    earlier = NOW - dt.timedelta(days=1)
    read = NotificationFactory(read_at=earlier)
    unread = NotificationFactory()

    assert Notification.objects.all().mark_read() == 1
    assert Notification.objects.all().mark_read() == 0

    read.refresh_from_db()
    unread.refresh_from_db()
    assert read.read_at == earlier
    assert unread.read_at is not None


def test_an_endpoint_is_found_by_exactly_the_topics_in_its_list():
    wanted = EndpointFactory(topics=["test.other", TOPIC])
    EndpointFactory(topics=["test"])
    EndpointFactory(topics=["test.happened_again"])
    EndpointFactory(topics=[])
    EndpointFactory(topics=[TOPIC], enabled=False)

    assert list(WebhookEndpoint.objects.for_topic(TOPIC)) == [wanted]


def test_health_is_the_last_success_and_the_last_verdict():
    endpoint = EndpointFactory()
    success = NOW - dt.timedelta(hours=2)
    for verdict, finished_at in (
        (Verdict.COMPLETED, NOW - dt.timedelta(hours=3)),
        (Verdict.COMPLETED, success),
        (Verdict.RETRY, NOW),
        (Verdict.SKIPPED, NOW),
        (Verdict.UNKNOWN, None),
    ):
        AttemptFactory(endpoint=endpoint, verdict=verdict, finished_at=finished_at)
    AttemptFactory(verdict=Verdict.COMPLETED, finished_at=NOW)

    healthy = WebhookEndpoint.objects.with_health().get(pk=endpoint.pk)

    assert healthy.delivered_at == success
    assert healthy.last_verdict == Verdict.RETRY


def test_an_endpoint_that_was_never_tried_has_no_health():
    EndpointFactory()

    endpoint = WebhookEndpoint.objects.with_health().get()

    assert endpoint.delivered_at is None
    assert endpoint.last_verdict is None


def test_attempts_without_an_end_are_open():
    AttemptFactory(finished_at=NOW)
    cut_off = AttemptFactory()

    assert list(WebhookAttempt.objects.open()) == [cut_off]


def test_the_oldest_attempts_are_the_first_written():
    attempts = AttemptFactory.create_batch(3)

    assert set(WebhookAttempt.objects.oldest(2)) == set(attempts[:2])
