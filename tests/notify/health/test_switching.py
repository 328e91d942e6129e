from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from notify.health import switching
from notify.models import AuditEntry, WebhookEndpoint
from tests.notify.factories import EndpointFactory
from tests.notify.flow import statuses, tell
from tests.notify.sinks import Sink

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("webhooks_on")]


def audited() -> list[tuple[str, str]]:
    return list(AuditEntry.objects.order_by("id").values_list("actor", "action"))


def test_disabling_is_written_audited_and_done_once():
    endpoint = EndpointFactory()

    assert switching.disable(endpoint, actor="ada")
    assert not endpoint.enabled
    assert endpoint.disabled_reason == ""
    assert not switching.disable(endpoint, actor="ada")
    assert audited() == [("ada", "webhook.endpoint_disabled")]
    entry = AuditEntry.objects.get()
    assert entry.target == f"webhook:{endpoint.name}"
    assert "SECRET-TOKEN" not in repr(entry.data)


def test_what_waited_for_an_endpoint_goes_out_when_it_is_enabled_oldest_first(
    sink: Sink,
):
    endpoint = EndpointFactory(url=sink.url)
    tell(3)
    switching.disable(endpoint, actor="system", reason="HTTP 410")
    run_due_jobs()
    assert {s for s, _ in statuses()} == {Status.PENDING}

    assert switching.enable(endpoint, actor="ada")

    assert (endpoint.enabled, endpoint.disabled_reason) == (True, "")
    assert (endpoint.breaker, endpoint.window) == ("recovering", 1)
    due = Job.objects.due().get()
    assert due == Job.objects.earliest("id")
    run_due_jobs()
    assert {s for s, _ in statuses()} == {Status.COMPLETED}
    assert WebhookEndpoint.objects.get().breaker == "closed"
    assert not switching.enable(endpoint, actor="ada")
    assert [action for _, action in audited()][:2] == [
        "webhook.endpoint_disabled",
        "webhook.endpoint_enabled",
    ]


@pytest.mark.parametrize("breaker", ["open", "parked"])
def test_resuming_has_the_oldest_tried_now(sink: Sink, breaker: str):
    tomorrow = timezone.now() + dt.timedelta(days=1)
    endpoint = EndpointFactory(
        url=sink.url,
        breaker=breaker,
        breaker_since=timezone.now(),
        breaker_until=tomorrow,
    )
    tell(2)
    assert run_due_jobs() == []

    assert switching.resume(endpoint, actor="ada")

    run_due_jobs()
    assert {s for s, _ in statuses()} == {Status.COMPLETED}
    endpoint.refresh_from_db()
    assert endpoint.breaker == "closed"
    assert not switching.resume(endpoint, actor="ada")
    assert audited()[0] == ("ada", "webhook.endpoint_resumed")


def test_where_nothing_waits_it_is_well_at_once():
    endpoint = EndpointFactory(
        breaker="open",
        breaker_reason="HTTP 503",
        breaker_since=timezone.now(),
        breaker_until=timezone.now(),
        breaker_tries=3,
    )

    switching.resume(endpoint, actor="ada")

    assert (endpoint.breaker, endpoint.breaker_reason) == ("closed", "")
    assert (endpoint.breaker_since, endpoint.breaker_tries) == (None, 0)


def test_one_that_is_disabled_is_not_resumed():
    endpoint = EndpointFactory(enabled=False, breaker=WebhookEndpoint.Breaker.OPEN)

    assert not switching.resume(endpoint, actor="ada")

    endpoint.refresh_from_db()
    assert endpoint.breaker == WebhookEndpoint.Breaker.OPEN


@pytest.mark.parametrize("verb", ["enable", "disable", "resume"])
def test_an_endpoint_that_is_gone_is_told_of(verb: str):
    endpoint = EndpointFactory()
    WebhookEndpoint.objects.all().delete()

    with pytest.raises(WebhookEndpoint.DoesNotExist):
        getattr(switching, verb)(endpoint, actor="ada")
