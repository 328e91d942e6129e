"""The breaker through the real handler, against real receivers."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db.models import F
from django.utils import timezone
from pytest_django import Settings

from jobs.models import Attempt, Job, Status
from jobs.postponing import SPREAD
from jobs.testing import run_due_jobs
from notify.health import backlog, settling
from notify.models import AuditEntry, Notification, WebhookAttempt, WebhookEndpoint
from tests.notify import sinks
from tests.notify.factories import AdminFactory, EndpointFactory
from tests.notify.flow import run_again_now, statuses, tell, until_passes
from tests.notify.sinks import Connection, Received, Sink

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("webhooks_on")]


def opened(sink: Sink, *, events: int = 6) -> WebhookEndpoint:
    """An endpoint whose breaker several events have opened; its deliveries wait."""
    sink.behave = sinks.answer(503)
    endpoint = EndpointFactory(url=sink.url)
    tell(events)
    run_due_jobs()
    endpoint.refresh_from_db()
    assert endpoint.breaker == "open"
    sink.requests.clear()
    return endpoint


def left_until(endpoint: WebhookEndpoint) -> float:
    """Seconds until one may try."""
    assert endpoint.breaker_until is not None
    return (endpoint.breaker_until - timezone.now()).total_seconds()


def test_failures_over_several_events_open_it_and_the_rest_waits_unsent(
    sink: Sink, settings: Settings
):
    sink.behave = sinks.answer(503)
    endpoint = EndpointFactory(url=sink.url)
    tell(20)

    run_due_jobs()

    endpoint.refresh_from_db()
    assert endpoint.breaker == "open"
    assert "HTTP 503" in endpoint.breaker_reason
    assert len(sink.requests) == settings.NOTIFY_WEBHOOK_BREAKER_FAILURES
    # The failure that opened it has used up nothing, nor have those that came behind it.
    assert statuses() == [(Status.PENDING, 1)] * 4 + [(Status.PENDING, 0)] * 16
    assert WebhookAttempt.objects.count() == 5
    assert not Job.objects.due().exists()
    assert run_due_jobs() == []


def test_one_event_alone_opens_nothing_and_dies_as_often_tried_as_it_may_be(sink: Sink):
    sink.behave = sinks.answer(503)
    endpoint = EndpointFactory(url=sink.url)
    tell()

    run_due_jobs()
    for _ in range(5):
        run_again_now()

    endpoint.refresh_from_db()
    assert statuses() == [(Status.DEAD, 6)]
    assert endpoint.breaker == "closed"
    assert Attempt.objects.count() == 6


def test_while_it_is_open_one_at_a_time_tries_and_each_wait_is_twice_the_last(
    sink: Sink, settings: Settings
):
    settings.NOTIFY_WEBHOOK_BREAKER_WAIT = dt.timedelta(seconds=10)
    settings.NOTIFY_WEBHOOK_BREAKER_MAX_WAIT = dt.timedelta(seconds=70)
    endpoint = opened(sink)
    before = statuses()
    for wait in (20, 40, 70, 70):
        until_passes()
        run_again_now()

        endpoint.refresh_from_db()
        assert wait - 2 < left_until(endpoint) <= wait * 1.25
        assert statuses() == before
    assert len(sink.requests) == 4
    assert WebhookAttempt.objects.filter(trial=True).count() == 4


def test_when_a_try_succeeds_windows_of_1_2_4_and_so_on_go_out_oldest_first(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
):
    endpoint = opened(sink, events=80)
    sink.behave = sinks.answer(204)
    windows: list[tuple[int, int]] = []
    release = backlog.release

    def noting(endpoint: WebhookEndpoint, count: int) -> int:
        windows.append((count, len(sink.requests)))
        return release(endpoint, count)

    monkeypatch.setattr(backlog, "release", noting)
    until_passes()
    run_again_now()
    for _ in range(3):
        run_again_now()

    endpoint.refresh_from_db()
    assert endpoint.breaker == "closed"
    # Each begins when all of the last have arrived.
    assert windows == [(1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32)]
    sent = [request.headers["X-ACW-Event-Id"] for request in sink.requests]
    assert sent == sorted(sent)
    assert statuses() == [(Status.COMPLETED, 2)] * 4 + [(Status.COMPLETED, 1)] * 76


def test_a_person_is_told_once_that_it_fails_and_once_that_it_is_well(sink: Sink):
    admin = AdminFactory()
    endpoint = opened(sink)
    until_passes()
    run_again_now()
    sink.behave = sinks.answer(204)
    until_passes()
    for _ in range(8):
        run_again_now()

    endpoint.refresh_from_db()
    assert endpoint.breaker == "closed"
    told = Notification.objects.filter(user=admin).order_by("id")
    assert [n.topic for n in told] == [
        "webhook.endpoint_failing",
        "webhook.endpoint_recovered",
    ]
    assert told[0].data["endpoint_id"] == endpoint.pk
    assert told[0].link.endswith(f"/{endpoint.pk}/change/")
    assert "SECRET-TOKEN" not in repr(told.values())
    audited = AuditEntry.objects.filter(target=f"webhook:{endpoint.name}")
    assert [row.action for row in audited.order_by("id")] == [n.topic for n in told]


def test_a_burst_of_401_parks_it_and_the_rest_of_the_events_survive(sink: Sink):
    sink.behave = sinks.answer(401)
    endpoint = EndpointFactory(url=sink.url)
    tell(30)

    run_due_jobs()

    endpoint.refresh_from_db()
    assert endpoint.breaker == "parked"
    assert "HTTP 401" in endpoint.breaker_reason
    assert [s for s, _ in statuses()] == [Status.DEAD] * 4 + [Status.PENDING] * 26
    assert len(sink.requests) == 5

    sink.behave = sinks.answer(204)
    until_passes()
    for _ in range(8):
        run_again_now()
    assert [s for s, _ in statuses()] == [Status.DEAD] * 4 + [Status.COMPLETED] * 26


def test_a_clock_that_is_minutes_off_parks_it_at_the_first_refusal(sink: Sink):
    sink.behave = sinks.answer(400, {"Date": "Mon, 01 Jan 2024 00:00:00 GMT"})
    endpoint = EndpointFactory(url=sink.url)
    tell(3)

    run_due_jobs()

    endpoint.refresh_from_db()
    assert endpoint.breaker == "parked"
    assert "clock" in endpoint.breaker_reason
    assert statuses() == [(Status.PENDING, 0)] * 3


def test_a_receiver_that_is_gone_is_disabled_and_only_its_answer_dies(sink: Sink):
    AdminFactory()
    sink.behave = sinks.answer(410)
    endpoint = EndpointFactory(url=sink.url)
    tell(3)

    run_due_jobs()

    endpoint.refresh_from_db()
    assert not endpoint.enabled
    assert "410" in endpoint.disabled_reason
    assert [s for s, _ in statuses()] == [Status.DEAD] + [Status.PENDING] * 2
    assert len(sink.requests) == 1
    topics = Notification.objects.values_list("topic", flat=True)
    assert set(topics) == {"webhook.endpoint_disabled", "webhook.dead_letter"}


def test_one_that_fails_for_too_long_is_disabled_with_the_reason(
    sink: Sink, settings: Settings
):
    endpoint = opened(sink)
    long_ago = timezone.now() - settings.NOTIFY_WEBHOOK_DISABLE_AFTER
    until_passes(breaker_since=long_ago)

    run_again_now()

    endpoint.refresh_from_db()
    assert not endpoint.enabled
    assert "HTTP 503" in endpoint.disabled_reason
    assert {s for s, _ in statuses()} == {Status.PENDING}


def test_a_refusal_of_one_event_dies_in_every_state_and_the_breaker_stays(sink: Sink):
    endpoint = opened(sink)
    sink.behave = sinks.answer(413)
    until_passes()

    run_again_now()

    endpoint.refresh_from_db()
    assert endpoint.breaker == "open"
    assert [s for s, _ in statuses()].count(Status.DEAD) == 1


def test_a_failure_while_it_recovers_opens_it_again(sink: Sink):
    endpoint = opened(sink)
    WebhookAttempt.objects.all().delete()  # or they would be those that fail again
    sink.behave = sinks.in_turn(sinks.answer(204), sinks.answer(500))
    until_passes()
    run_again_now()

    endpoint.refresh_from_db()
    assert (endpoint.breaker, endpoint.breaker_tries) == ("open", 0)
    assert [s for s, _ in statuses()].count(Status.COMPLETED) == 1
    assert len(sink.requests) == 2


def test_the_next_try_is_another_deliverys(sink: Sink):
    endpoint = opened(sink)
    until_passes()
    run_again_now()

    endpoint.refresh_from_db()
    tried = WebhookAttempt.objects.get(trial=True)
    last = Job.objects.latest("run_at")
    assert last.pk == tried.job_id
    assert endpoint.breaker_until is not None
    assert last.run_at - endpoint.breaker_until >= SPREAD


def test_events_that_a_receiver_never_takes_do_not_keep_the_others_waiting(sink: Sink):
    opened(sink, events=5)

    def but_those(connection: Connection, request: Received) -> None:
        status = 503 if request.headers["X-ACW-Event-Id"] in never else 204
        sinks.answer(status)(connection, request)

    never = {str(pk) for pk in Job.objects.values_list("pk", flat=True)}
    sink.behave = but_those
    tell(8)
    for _ in range(6):
        until_passes()
        # All are due, in the order in which they would have been.
        pending = Job.objects.filter(status=Status.PENDING)
        pending.update(run_at=F("run_at") - dt.timedelta(hours=2))
        run_due_jobs()

    assert [s for s, _ in statuses()] == [Status.PENDING] * 5 + [Status.COMPLETED] * 8
    assert max(attempts for _, attempts in statuses()) > 1


def test_a_receiver_that_asks_for_time_gets_it_also_from_the_breaker(sink: Sink):
    endpoint = opened(sink)
    sink.behave = sinks.answer(503, {"Retry-After": "1800"})
    until_passes()

    run_again_now()

    endpoint.refresh_from_db()
    assert left_until(endpoint) > 1790


def test_a_crash_in_the_middle_of_a_window_does_not_hold_up_the_rest(sink: Sink):
    endpoint = EndpointFactory(
        url=sink.url, breaker="recovering", window=1, breaker_since=timezone.now()
    )
    tell(2)
    WebhookAttempt.objects.create(
        endpoint=endpoint, job_id=Job.objects.earliest("id").pk, topic="a.b", number=1
    )

    run_again_now()
    run_again_now()

    assert {s for s, _ in statuses()} == {Status.COMPLETED}


def test_what_is_enqueued_while_it_is_open_waits_behind_the_first_try(sink: Sink):
    endpoint = opened(sink)

    tell()

    assert Job.objects.latest("id").run_at == endpoint.breaker_until
    assert settling.rules().failures == 5
