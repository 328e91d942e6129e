from __future__ import annotations

import datetime as dt
import logging

import pytest
from django.utils import timezone

from notify.health import changes
from notify.health.breaker import WELL, Decision, Fate, Standing
from notify.models import AuditEntry, Notification, WebhookEndpoint
from tests.notify.factories import AdminFactory, AttemptFactory, EndpointFactory

pytestmark = pytest.mark.django_db

NOW = timezone.now()
OPEN = Standing(
    state="open",
    reason="HTTP 503 " + "x" * 400,
    since=NOW,
    until=NOW + dt.timedelta(seconds=100),
)


def write(endpoint: WebhookEndpoint, standing: Standing, **more: object) -> None:
    decision = Decision(fate=Fate.WAIT, standing=standing, **more)  # type: ignore[arg-type]
    changes.write(endpoint, decision, now=NOW)


def told() -> list[str]:
    return list(Notification.objects.order_by("id").values_list("topic", flat=True))


def test_what_was_decided_is_written_and_the_wait_only_ever_longer():
    endpoint = EndpointFactory()

    write(endpoint, OPEN)

    row = WebhookEndpoint.objects.get()
    assert (row.breaker, row.breaker_since) == ("open", NOW)
    assert len(row.breaker_reason) == 300
    assert row.breaker_until is not None
    waits = (row.breaker_until - NOW).total_seconds()
    assert 100 <= waits <= 125
    assert row.breaker_until == endpoint.breaker_until


def test_a_window_begins_behind_the_newest_attempt():
    endpoint = EndpointFactory(breaker="open")
    attempt = AttemptFactory(endpoint=endpoint)

    write(endpoint, Standing(state="recovering", window=1), windowed=True, let_out=1)

    row = WebhookEndpoint.objects.get()
    assert (row.window, row.window_after) == (1, attempt.pk)


def test_admins_are_told_of_each_change_once_in_words_without_the_url(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO)
    AdminFactory()
    endpoint = EndpointFactory()
    steps = [
        (OPEN, ""),
        (OPEN, ""),
        (Standing(state="parked", reason="HTTP 401"), ""),
        (Standing(state="recovering", window=1), ""),
        (WELL, ""),
        (WELL, "HTTP 410"),
        (WELL, "HTTP 410"),
    ]
    for standing, disable in steps:
        write(endpoint, standing, disable=disable)

    assert told() == [
        "webhook.endpoint_failing",
        "webhook.endpoint_failing",
        "webhook.endpoint_recovered",
        "webhook.endpoint_disabled",
    ]
    audited = AuditEntry.objects.order_by("id").values_list("actor", "action")
    assert list(audited) == [("system", topic) for topic in told()]
    logged = [record.getMessage() for record in caplog.records]
    for topic in set(told()):
        assert topic in logged
    told_of = repr(list(Notification.objects.values())) + caplog.text
    assert "SECRET-TOKEN" not in told_of
    page = Notification.objects.earliest("id").link
    assert page.endswith(f"/{endpoint.pk}/change/")
