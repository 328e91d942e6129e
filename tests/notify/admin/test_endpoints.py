from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.asserts import assertContains, assertNotContains

from notify.forms import WebhookEndpointForm
from notify.models import AuditEntry, WebhookAttempt, WebhookEndpoint
from tests.notify.admin.pages import change_page, client_with, page
from tests.notify.factories import (
    SECRET,
    TOPIC,
    AttemptFactory,
    EndpointFactory,
    RecoveryFactory,
    delivery_to,
)

pytestmark = pytest.mark.django_db


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


def test_one_that_was_recovered_is_deleted_with_its_recoveries(admin: Client):
    endpoint = RecoveryFactory(state="finished").endpoint
    AttemptFactory(endpoint=endpoint)

    admin.post(change_page(endpoint, "delete"), {"post": "yes"})

    assert not WebhookEndpoint.objects.exists()
    assert WebhookAttempt.objects.get().endpoint is None


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
    assertContains(shown, "none: it gets nothing")
    assertNotContains(shown, "SECRET-TOKEN")


def test_whoever_may_only_look_sees_neither_url_nor_secret():
    endpoint = EndpointFactory()

    shown = client_with("view_webhookendpoint").get(change_page(endpoint))

    assertContains(shown, "https://hooks.example #")
    assertNotContains(shown, "SECRET-TOKEN")
    assertNotContains(shown, SECRET)
    assertNotContains(shown, 'name="secret"')
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


def test_saving_the_form_leaves_what_workers_have_written_meanwhile(
    admin: Client, monkeypatch: pytest.MonkeyPatch
):
    endpoint = EndpointFactory(name="old")
    clean = WebhookEndpointForm.clean_secret

    def meanwhile(form: WebhookEndpointForm) -> str:
        WebhookEndpoint.objects.update(
            breaker="open",
            breaker_tries=3,
            window=2,
            enabled=False,
            staged_secret=endpoint.encrypted_secret,
        )
        return clean(form)

    monkeypatch.setattr(WebhookEndpointForm, "clean_secret", meanwhile)
    admin.post(
        change_page(endpoint),
        {"name": "new", "url": endpoint.url, "topics": [], "secret": ""},
    )

    kept = WebhookEndpoint.objects.get()
    assert (kept.name, kept.topics) == ("new", [])
    assert (kept.breaker, kept.breaker_tries, kept.window) == ("open", 3, 2)
    assert not kept.enabled
    assert kept.staged_secret


def test_the_form_neither_enables_nor_disables(admin: Client):
    endpoint = EndpointFactory(name="chat")

    assertNotContains(admin.get(change_page(endpoint)), 'name="enabled"')
    admin.post(change_page(endpoint), {"name": "chat", "url": endpoint.url})

    assert WebhookEndpoint.objects.get().enabled


def test_health_shows_in_the_list_and_on_the_page(admin: Client):
    endpoint = EndpointFactory(
        breaker="parked", breaker_reason="HTTP 401", breaker_until=timezone.now()
    )
    AttemptFactory(
        endpoint=endpoint,
        verdict=WebhookAttempt.Verdict.RETRY,
        finished_at=timezone.now(),
    )
    AttemptFactory(endpoint=endpoint, slot=1)
    delivery_to(endpoint)

    for shown in (admin.get(page("changelist")), admin.get(change_page(endpoint))):
        for text in (
            ">parked</span>",
            "HTTP 401; the next delivery tries it",
            "1 of 4",
            f"?endpoint={endpoint.pk}&amp;status=pending",
            ">1</a>, the oldest for",
        ):
            assertContains(shown, text)
    assertContains(admin.get(change_page(endpoint)), ">never<")


def test_headers_of_its_own_are_set_audited_by_name_and_never_shown(admin: Client):
    endpoint = EndpointFactory()
    values = {"name": endpoint.name, "url": endpoint.url, "topics": [], "secret": ""}
    headers = "Authorization: Bearer HEADER-SECRET\r\nX-Tenant: HEADER-SECRET"

    saved = admin.post(
        change_page(endpoint), {**values, "headers": headers, "timeout": "20s"}
    )

    assert saved.status_code == 302
    endpoint.refresh_from_db()
    assert endpoint.own_headers()["X-Tenant"] == "HEADER-SECRET"
    changed = AuditEntry.objects.get().data["changed"]
    assert {"headers", "timeout"} <= set(changed)
    assert "HEADER-SECRET" not in repr(list(AuditEntry.objects.values()))
    shown = admin.get(change_page(endpoint))
    assertContains(shown, "X-Tenant: (unchanged)")
    assertNotContains(shown, "HEADER-SECRET")
    viewed = client_with("view_webhookendpoint").get(change_page(endpoint))
    assertNotContains(viewed, "X-Tenant")
