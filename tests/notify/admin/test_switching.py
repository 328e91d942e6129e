from __future__ import annotations

import pytest
from django.test import Client
from pytest_django.asserts import assertContains, assertNotContains

from notify.models import AuditEntry, WebhookEndpoint
from tests.notify.admin.pages import change_page, client_with
from tests.notify.factories import EndpointFactory

pytestmark = pytest.mark.django_db


def button(verb: str, endpoint: WebhookEndpoint) -> str:
    return f'action="{change_page(endpoint, verb)}"'


def test_an_endpoint_is_disabled_and_enabled_by_its_buttons(admin: Client):
    endpoint = EndpointFactory(name="chat")
    assertContains(admin.get(change_page(endpoint)), button("disable", endpoint))

    disabled = admin.post(change_page(endpoint, "disable"), follow=True)
    assertContains(disabled, "Disabled: ")
    assertContains(disabled, button("enable", endpoint))
    assertNotContains(disabled, button("disable", endpoint))
    enabled = admin.post(change_page(endpoint, "enable"), follow=True)
    assertContains(enabled, "Enabled: ")

    endpoint.refresh_from_db()
    assert endpoint.enabled
    entries = AuditEntry.objects.order_by("pk").values_list("actor", "action")
    assert list(entries) == [
        ("alice", "webhook.endpoint_disabled"),
        ("alice", "webhook.endpoint_enabled"),
    ]


def test_one_that_is_held_back_is_resumed_by_its_button(admin: Client):
    endpoint = EndpointFactory(breaker="open", breaker_reason="HTTP 503")
    shown = admin.get(change_page(endpoint))
    assertContains(shown, button("resume", endpoint))
    assertContains(shown, "HTTP 503")

    assertContains(
        admin.post(change_page(endpoint, "resume"), follow=True), "tried again now"
    )

    endpoint.refresh_from_db()
    assert endpoint.breaker == WebhookEndpoint.Breaker.CLOSED
    again = admin.post(change_page(endpoint, "resume"), follow=True)
    assertContains(again, "Nothing to resume")
    assertNotContains(again, button("resume", endpoint))


@pytest.mark.parametrize("verb", ["enable", "disable", "resume"])
def test_it_needs_the_permission_to_change_and_a_post(verb: str):
    endpoint = EndpointFactory(enabled=verb != "enable", breaker="open")
    viewer = client_with("view_webhookendpoint", "test_webhookendpoint")
    assertNotContains(viewer.get(change_page(endpoint)), button(verb, endpoint))

    assert viewer.post(change_page(endpoint, verb)).status_code == 403
    changer = client_with("view_webhookendpoint", "change_webhookendpoint")
    assert changer.get(change_page(endpoint, verb)).status_code == 405
    assert not AuditEntry.objects.exists()

    assert changer.post(change_page(endpoint, verb)).status_code == 302
    assert AuditEntry.objects.count() == 1
