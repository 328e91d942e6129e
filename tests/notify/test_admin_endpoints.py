from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.asserts import assertContains, assertNotContains

from notify.models import AuditEntry, WebhookAttempt, WebhookEndpoint
from tests.notify import sinks
from tests.notify.factories import (
    SECRET,
    TOPIC,
    AdminFactory,
    AttemptFactory,
    EndpointFactory,
    UserFactory,
)
from tests.notify.sinks import Sink

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(AdminFactory(username="alice"))
    return client


def client_with(*permissions: str) -> Client:
    user = UserFactory(is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def page(verb: str, *args: object) -> str:
    return reverse(f"admin:notify_webhookendpoint_{verb}", args=args)


def change_page(endpoint: WebhookEndpoint, verb: str = "change") -> str:
    return page(verb, endpoint.pk)


def test_an_endpoint_is_added_and_audited(admin: Client):
    added = admin.post(
        page("add"),
        {
            "name": "chat",
            "url": "https://hooks.example/SECRET-TOKEN",
            "secret": SECRET,
            "topics": [TOPIC],
            "enabled": "on",
        },
    )

    assert added.status_code == 302
    assert WebhookEndpoint.objects.get().signing_secret() == SECRET
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == ("alice", "webhook.endpoint_added")
    assert "secret" in entry.data["changed"]
    assert SECRET not in repr(entry.data)
    assert "SECRET-TOKEN" not in repr(entry.data)


def test_changes_and_deletions_are_audited(admin: Client):
    one, two = EndpointFactory(name="one"), EndpointFactory(name="two")
    admin.post(
        change_page(one), {"name": "one", "url": one.url, "topics": [], "secret": ""}
    )
    admin.post(change_page(one, "delete"), {"post": "yes"})
    admin.post(
        page("changelist"),
        {"action": "delete_selected", "_selected_action": [two.pk], "post": "yes"},
    )

    assert not WebhookEndpoint.objects.exists()
    assert list(AuditEntry.objects.order_by("id").values_list("action", "target")) == [
        ("webhook.endpoint_changed", "webhook:one"),
        ("webhook.endpoint_deleted", "webhook:one"),
        ("webhook.endpoint_deleted", "webhook:two"),
    ]


def test_lists_show_the_host_and_never_the_url(admin: Client):
    endpoint = EndpointFactory()
    AttemptFactory(
        endpoint=endpoint,
        verdict=WebhookAttempt.Verdict.COMPLETED,
        finished_at=timezone.now(),
    )
    EndpointFactory(topics=[])

    shown = admin.get(page("changelist"))

    assertContains(shown, "https://hooks.example #")
    assertContains(shown, "Delivered")
    assertContains(shown, "none: it gets nothing")
    assertNotContains(shown, "SECRET-TOKEN")


def test_whoever_may_only_look_sees_neither_url_nor_secret():
    endpoint = EndpointFactory()

    shown = client_with("view_webhookendpoint").get(change_page(endpoint))

    assertContains(shown, "https://hooks.example #")
    assertNotContains(shown, "SECRET-TOKEN")
    assertNotContains(shown, "secret")
    assertNotContains(shown, "Send test event")


@pytest.mark.parametrize(
    "lookup", ["url__startswith", "encrypted_secret__contains", "url"]
)
def test_a_url_that_is_not_shown_cannot_be_guessed_by_filters(lookup: str):
    EndpointFactory()
    viewer = client_with("view_webhookendpoint")

    assert viewer.get(page("changelist"), {lookup: "https"}).status_code == 400
    assert viewer.get(page("changelist"), {"enabled__exact": "1"}).status_code == 200


def test_whoever_may_change_it_sees_the_url_and_that_there_is_a_secret(admin: Client):
    shown = admin.get(change_page(EndpointFactory()))

    assertContains(shown, "SECRET-TOKEN")
    assertContains(shown, "A secret is set.")
    assertNotContains(shown, SECRET)


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
