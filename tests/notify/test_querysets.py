from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.utils import timezone

from notify.models import (
    Notification,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
)
from tests.jobs.factories import JobFactory
from tests.notify.factories import (
    TOPIC,
    AttemptFactory,
    EndpointFactory,
    NotificationFactory,
    UserFactory,
    delivery_to,
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


def test_the_unread_are_found_without_a_look_at_all_that_was_read():
    """Each page of the admin counts them."""
    user = UserFactory()
    Notification.objects.bulk_create(
        Notification(user=user, topic=TOPIC, title="x", read_at=None if n < 9 else NOW)
        for n in range(3000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE notifications")

    unread = Notification.objects.of(user).unread()

    assert "notifications_inbox" in unread.explain()
    assert unread.count() == 9


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


def test_an_endpoint_is_found_by_patterns_too():
    wanted = [
        EndpointFactory(topics=["test.*", "task.taken"]),
        EndpointFactory(topics=["test.nested.*"]),
        EndpointFactory(topics=["*"]),
    ]
    for others in (["test.happened.*"], ["nested.*"], ["tes.*"], ["task.*"], ["test"]):
        EndpointFactory(topics=others)
    EndpointFactory(topics=["*"], enabled=False)

    found = WebhookEndpoint.objects.for_topic("test.nested.happened")

    assert list(found.order_by("pk")) == wanted


def test_what_is_about_webhooks_finds_no_endpoint_whatever_its_list_says():
    EndpointFactory(topics=["*", "webhook.*", "webhook.dead_letter"])

    assert not WebhookEndpoint.objects.for_topic("webhook.dead_letter").exists()


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


def test_failing_since_is_the_first_failure_after_the_last_success():
    endpoint, well = EndpointFactory(), EndpointFactory()
    since = NOW - dt.timedelta(hours=2)
    for verdict, finished_at in (
        (Verdict.PERMANENT, NOW - dt.timedelta(hours=5)),
        (Verdict.COMPLETED, NOW - dt.timedelta(hours=4)),
        (Verdict.SKIPPED, NOW - dt.timedelta(hours=3)),
        (Verdict.RETRY, since),
        (Verdict.PERMANENT, NOW),
    ):
        AttemptFactory(endpoint=endpoint, verdict=verdict, finished_at=finished_at)
    for verdict in (Verdict.RETRY, Verdict.COMPLETED):
        AttemptFactory(endpoint=well, verdict=verdict, finished_at=NOW)

    with_health = WebhookEndpoint.objects.with_health()

    assert with_health.get(pk=endpoint.pk).failing_since == since
    assert with_health.get(pk=well.pk).failing_since is None


def test_what_was_never_well_fails_since_its_first_failure():
    endpoint = EndpointFactory()
    for hours in (2, 1):
        ago = NOW - dt.timedelta(hours=hours)
        AttemptFactory(endpoint=endpoint, verdict=Verdict.RETRY, finished_at=ago)

    failing = WebhookEndpoint.objects.with_health().get()

    assert failing.failing_since == NOW - dt.timedelta(hours=2)


def test_what_people_try_does_not_make_it_fail():
    """A test event, a probe of a rotation, a check-up: all without a job."""
    endpoint = EndpointFactory()
    AttemptFactory(
        endpoint=endpoint, job_id=None, verdict=Verdict.PERMANENT, finished_at=NOW
    )

    fares = WebhookEndpoint.objects.with_health().get()

    assert fares.failing_since is None
    assert fares.last_verdict == Verdict.PERMANENT


def test_health_counts_what_is_in_flight_and_what_waits_of_each_endpoint():
    endpoint, other = EndpointFactory(), EndpointFactory()
    for slot in (1, 2):
        AttemptFactory(endpoint=endpoint, slot=slot)
    AttemptFactory(endpoint=endpoint)
    oldest = delivery_to(endpoint)
    delivery_to(endpoint, later=True)
    for state in ("running", "completed", "dead"):
        delivery_to(endpoint, **{state: True})
    JobFactory(ref_id=str(endpoint.pk))

    busy, idle = WebhookEndpoint.objects.with_health().order_by("pk")

    assert (busy.pk, busy.in_flight, busy.waiting) == (endpoint.pk, 2, 2)
    # Of those the worker was killed: nothing is under way any more.
    WebhookAttempt.objects.filter(slot=1).update(started_at=NOW - dt.timedelta(hours=1))
    assert WebhookEndpoint.objects.with_health().get(pk=endpoint.pk).in_flight == 1
    assert busy.waiting_since == oldest.created_at
    assert (idle.pk, idle.in_flight, idle.waiting) == (other.pk, 0, 0)
    assert idle.waiting_since is None


def test_health_is_read_from_indexes_alone():
    EndpointFactory.create_batch(3)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")

    plan = WebhookEndpoint.objects.with_health().explain()

    assert "Seq Scan on jobs" not in plan
    assert "Seq Scan on webhook_attempts" not in plan


def test_what_died_in_a_time_comes_in_the_order_of_the_events():
    endpoint = EndpointFactory()
    since, until = NOW - dt.timedelta(hours=2), NOW - dt.timedelta(hours=1)
    first, second = (
        delivery_to(endpoint, dead=True, completed_at=time) for time in (until, since)
    )
    for moment in (since - dt.timedelta(seconds=1), until + dt.timedelta(seconds=1)):
        delivery_to(endpoint, dead=True, completed_at=moment)
    delivery_to(endpoint, completed=True, completed_at=since)
    delivery_to(EndpointFactory(), dead=True, completed_at=since)

    died = WebhookDelivery.objects.of(endpoint).died(since=since, until=until)

    assert list(died) == [first, second]


def test_what_died_for_one_among_many_is_found_by_its_index():
    endpoint = EndpointFactory()
    delivery_to(endpoint, dead=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs (id, type, ref_id, status, completed_at)"
            " SELECT gen_random_uuid(), 'webhook.deliver', %s + n %% 50, 'dead', now() FROM generate_series(1, 5000) AS n",
            [endpoint.pk],
        )
        cursor.execute("ANALYZE jobs")
    day = dt.timedelta(days=1)
    dead = WebhookDelivery.objects.of(endpoint)
    died = dead.died(since=NOW - day, until=NOW + day)

    assert "jobs_dead_ref" in died.explain()


def test_attempts_without_an_end_are_open():
    AttemptFactory(finished_at=NOW)
    cut_off = AttemptFactory()

    assert list(WebhookAttempt.objects.open()) == [cut_off]


def test_the_oldest_attempts_are_the_first_written():
    attempts = AttemptFactory.create_batch(3)

    assert set(WebhookAttempt.objects.oldest(2)) == set(attempts[:2])
