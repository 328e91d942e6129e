from __future__ import annotations

import pytest
from django.test import Client
from pytest_django.asserts import assertContains, assertNotContains

from notify.models import WebhookEndpoint, WebhookRecovery
from tests.jobs.factories import ago
from tests.notify.admin.pages import change_page, client_with
from tests.notify.factories import EndpointFactory, RecoveryFactory, delivery_to

pytestmark = pytest.mark.django_db


@pytest.fixture
def chat() -> WebhookEndpoint:
    """An endpoint for which three have died, one of them long ago."""
    endpoint: WebhookEndpoint = EndpointFactory(name="chat")
    for _ in range(2):
        delivery_to(endpoint, dead=True)
    delivery_to(endpoint, dead=True, completed_at=ago(days=3))
    return endpoint


def test_the_button_leads_to_the_page_that_asks(admin: Client, chat: WebhookEndpoint):
    shown = admin.get(change_page(chat))
    assertContains(shown, f'href="{change_page(chat, "recover")}"')

    asked = admin.get(change_page(chat, "recover"))

    assertContains(asked, 'name="since"')
    assertNotContains(asked, "have died since")


def test_they_are_counted_before_anything_happens(admin: Client, chat: WebhookEndpoint):
    query = {"since": "24h", "per_minute": "30"}
    shown = admin.get(change_page(chat, "recover"), query)

    assertContains(shown, "<strong>2</strong> have died since")
    assertContains(shown, "it takes 4s")
    assertContains(shown, "Resend 2")
    assert not WebhookRecovery.objects.exists()


def test_it_begins_when_it_is_confirmed(admin: Client, chat: WebhookEndpoint):
    shown = admin.get(
        change_page(chat, "recover"), {"since": "24h", "per_minute": "30"}
    )
    begun = admin.post(
        change_page(chat, "recover"),
        {"since": shown.context["counted"].since.isoformat(), "per_minute": "30"},
        follow=True,
    )

    assertContains(begun, "2 are resent to chat.")
    recovery = WebhookRecovery.objects.get()
    assert (recovery.counted, recovery.per_minute) == (2, 30)
    assert recovery.requested_by == "alice"
    assertContains(begun, "0 of 2")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"since": "yesterday", "per_minute": "30"}, "accepted: how long ago"),
        ({"since": "2h", "per_minute": "0"}, "greater than or equal to 1"),
    ],
    ids=["since", "pace"],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_what_cannot_be_read_is_said_in_the_form(
    admin: Client, chat: WebhookEndpoint, method: str, query, message: str
):
    shown = getattr(admin, method)(change_page(chat, "recover"), query)

    assertContains(shown, message)
    assert not WebhookRecovery.objects.exists()


def test_where_nothing_died_or_one_runs_already_none_can_be_begun(
    admin: Client, chat: WebhookEndpoint
):
    query = {"since": "1s", "per_minute": "30"}
    shown = admin.get(change_page(chat, "recover"), query)
    assertContains(shown, "Nothing has died since")
    RecoveryFactory(endpoint=chat)

    live = admin.get(change_page(chat, "recover"))
    refused = admin.post(
        change_page(chat, "recover"), {**query, "since": "24h"}, follow=True
    )

    assertContains(live, "There can be one at a time.")
    assertContains(refused, "Refused: a recovery of chat is running already")
    assert WebhookRecovery.objects.count() == 1


def test_it_needs_the_permission_to_resend(chat: WebhookEndpoint):
    viewer = client_with("view_webhookendpoint", "change_webhookendpoint")
    assertNotContains(viewer.get(change_page(chat)), "Recover…")
    for method in (viewer.get, viewer.post):
        assert method(change_page(chat, "recover")).status_code == 403

    resender = client_with("view_webhookendpoint", "resend_webhookdelivery")
    assertContains(resender.get(change_page(chat)), "Recover…")
    assert resender.get(change_page(chat, "recover")).status_code == 200


def test_whoever_may_see_no_recoveries_comes_back_to_the_endpoint():
    endpoint = EndpointFactory(name="chat")
    delivery_to(endpoint, dead=True)
    resender = client_with("view_webhookendpoint", "resend_webhookdelivery")

    begun = resender.post(
        change_page(endpoint, "recover"),
        {"since": "24h", "per_minute": "30"},
        follow=True,
    )

    assertContains(begun, "1 is resent to chat.")
