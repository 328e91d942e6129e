from __future__ import annotations

import pytest
from django.test import Client
from pytest_django.asserts import assertContains, assertNotContains

from notify.models import AuditEntry
from tests.notify.admin.pages import change_page, client_with
from tests.notify.factories import AdminFactory, EndpointFactory
from tests.notify.sinks import Sink

pytestmark = pytest.mark.django_db


def test_the_button_checks_the_receiver_up_and_shows_what_was_found(
    admin: Client, sink: Sink
):
    endpoint = EndpointFactory(name="chat", url=sink.url, checkup_allowed=True)
    assertContains(admin.get(change_page(endpoint)), "Check up")

    page = admin.post(change_page(endpoint, "checkup"))

    assertContains(page, '<tr class="checkup-failed">', count=3)
    assertContains(page, "accepts forgeries (HTTP 204)")
    assertContains(page, "docs/webhooks.md")
    assertNotContains(page, "SECRET-TOKEN")
    assert len(sink.requests) == 5
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == ("alice", "webhook.checked_up")


def test_without_an_agreement_nothing_is_sent_and_the_way_to_agree_is_told(
    admin: Client, sink: Sink
):
    endpoint = EndpointFactory(url=sink.url)

    page = admin.post(change_page(endpoint, "checkup"), follow=True)

    assertContains(page, "its owner has to agree")
    assert sink.connections == []


def test_it_needs_its_permission_a_post_and_a_token(admin: Client, sink: Sink):
    endpoint = EndpointFactory(url=sink.url, checkup_allowed=True)
    may_change = client_with("change_webhookendpoint", "view_webhookendpoint")
    may_test = client_with("view_webhookendpoint", "test_webhookendpoint")
    without_token = Client(enforce_csrf_checks=True)
    without_token.force_login(AdminFactory())
    checkup = change_page(endpoint, "checkup")

    assert may_change.post(checkup).status_code == 403
    assert without_token.post(checkup).status_code == 403
    assert admin.get(checkup).status_code == 405
    assertNotContains(may_change.get(change_page(endpoint)), "Check up")
    assert sink.connections == []

    assert may_test.post(checkup).status_code == 200
    assert len(sink.requests) == 5
