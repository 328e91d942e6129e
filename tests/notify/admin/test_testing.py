from __future__ import annotations

import pytest
from django.test import Client
from pytest_django.asserts import assertContains

from notify.models import AuditEntry
from tests.notify import sinks
from tests.notify.admin.pages import change_page, client_with, page
from tests.notify.factories import (
    AdminFactory,
    EndpointFactory,
)
from tests.notify.sinks import Sink

pytestmark = pytest.mark.django_db


def test_the_button_sends_a_test_event_and_shows_what_came_of_it(
    admin: Client, sink: Sink
):
    endpoint = EndpointFactory(name="chat", url=sink.url)
    assertContains(admin.get(change_page(endpoint)), "Send test event")
    sink.behave = sinks.in_turn(sinks.answer(204), sinks.answer(403))

    delivered = admin.post(change_page(endpoint, "test"), follow=True)
    refused = admin.post(change_page(endpoint, "test"), follow=True)

    assertContains(delivered, "Delivered: HTTP 204 in ")
    assertContains(refused, "HTTP 403 Forbidden.")
    assert [r.headers["X-ACW-Topic"] for r in sink.requests] == ["webhook.test"] * 2
    entries = AuditEntry.objects.order_by("id")
    assert [entry.data["verdict"] for entry in entries] == ["completed", "permanent"]
    assert {entry.action for entry in entries} == {"webhook.test_sent"}


def test_a_test_event_is_sent_by_post_alone(admin: Client, sink: Sink):
    endpoint = EndpointFactory(url=sink.url)

    assert admin.get(change_page(endpoint, "test")).status_code == 405
    assert sink.connections == []


def test_a_test_event_needs_its_permission_and_a_token(sink: Sink):
    endpoint = EndpointFactory(url=sink.url)
    may_change = client_with("change_webhookendpoint", "view_webhookendpoint")
    may_test = client_with("view_webhookendpoint", "test_webhookendpoint")
    without_token = Client(enforce_csrf_checks=True)
    without_token.force_login(AdminFactory())

    refused = may_change.post(change_page(endpoint, "test"))
    forged = without_token.post(change_page(endpoint, "test"))
    assert (refused.status_code, forged.status_code) == (403, 403)
    assert sink.connections == []

    assert may_test.post(change_page(endpoint, "test")).status_code == 302
    assert len(sink.requests) == 1


def test_a_test_event_for_no_endpoint_is_not_found(admin: Client):
    gone = page("test", 12345)

    assert admin.post(gone).status_code == 404
