from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from pytest_django.asserts import assertContains, assertNotContains

from jobs.testing import wait_until
from notify import rotation, signing
from notify.models import AuditEntry, WebhookAttempt, WebhookEndpoint
from tests.notify.admin.pages import change_page, client_with
from tests.notify.factories import SECRET, AdminFactory, EndpointFactory
from tests.notify.sinks import Sink
from tests.notify.verifying import Receiver, by_the_contract

pytestmark = pytest.mark.django_db
NEW_SECRET = "the-next-secret-0123456789abcdef"


def secrets_of(endpoint: WebhookEndpoint) -> list[str]:
    return rotation.signing_secrets(WebhookEndpoint.objects.get(pk=endpoint.pk))


def form_of(endpoint: WebhookEndpoint, **values: str) -> dict[str, Any]:
    """What the browser sends when the endpoint's form is saved."""
    return {
        "name": endpoint.name,
        "url": endpoint.url,
        "topics": endpoint.topics,
        "max_in_flight": endpoint.max_in_flight,
        "enabled": "on",
        "secret": "",
        **values,
    }


def test_the_buttons_lead_from_step_to_step(admin: Client, sink: Sink):
    endpoint = EndpointFactory(url=sink.url)
    assertContains(admin.get(change_page(endpoint)), "Rotate secret")
    assertContains(admin.get(change_page(endpoint)), "There is one secret.")

    shown = admin.post(change_page(endpoint, "rotate"))
    _, new = secrets_of(endpoint)
    assertContains(shown, new)
    assertContains(shown, signing.standard_form(new))
    staged = admin.get(change_page(endpoint))
    assertContains(staged, "A new secret has been staged since ")
    assertContains(staged, "Abandon new secret")
    assertNotContains(staged, "Rotate secret")

    sink.behave = Receiver(by_the_contract, SECRET)
    refused = admin.post(change_page(endpoint, "promote"), follow=True)
    assertContains(refused, "did not take a test event")
    sink.behave = Receiver(by_the_contract, new)
    promoted = admin.post(change_page(endpoint, "promote"), follow=True)
    assertContains(promoted, "Promoted: the receiver has taken a test event")
    assertContains(promoted, "0 of 3 deliveries have followed since ")

    retired = admin.post(change_page(endpoint, "retire"), follow=True)
    assertContains(retired, "Retired: only the new secret signs.")
    assert secrets_of(endpoint) == [new]
    assert set(AuditEntry.objects.values_list("actor", flat=True)) == {"alice"}


def test_a_new_secret_is_shown_once_and_stored_nowhere_in_the_clear(admin: Client):
    endpoint = EndpointFactory()

    shown = admin.post(change_page(endpoint, "rotate"))

    _, new = secrets_of(endpoint)
    assertContains(shown, new, count=1)
    assert "no-store" in shown.headers["Cache-Control"]
    assertNotContains(admin.get(change_page(endpoint)), new)
    again = admin.post(change_page(endpoint, "rotate"), follow=True)
    assertContains(again, "new secret is staged already: promote it")
    assertNotContains(again, new)
    sessions = repr([session.get_decoded() for session in Session.objects.all()])
    rows = repr(
        [
            *AuditEntry.objects.values(),
            *WebhookEndpoint.objects.values(),
            *WebhookAttempt.objects.values(),
        ]
    )
    assert new not in sessions + rows + repr(admin.cookies)


def test_a_staged_secret_is_taken_back(admin: Client):
    endpoint = EndpointFactory()
    rotation.stage(endpoint, NEW_SECRET, actor="alice")

    assertContains(
        admin.post(change_page(endpoint, "abandon"), follow=True), "Abandoned: "
    )

    assert secrets_of(endpoint) == [SECRET]


@pytest.mark.parametrize("step", ["rotate", "promote", "retire", "abandon"])
def test_a_step_needs_the_permission_to_change_a_post_and_a_token(step: str):
    endpoint = EndpointFactory()
    if step in {"promote", "abandon"}:
        rotation.stage(endpoint, NEW_SECRET, actor="alice")
    before = secrets_of(endpoint)
    may_test = client_with("view_webhookendpoint", "test_webhookendpoint")
    may_change = client_with("view_webhookendpoint", "change_webhookendpoint")
    without_token = Client(enforce_csrf_checks=True)
    without_token.force_login(AdminFactory())

    assertNotContains(may_test.get(change_page(endpoint)), f"/{step}/")
    assert may_test.post(change_page(endpoint, step)).status_code == 403
    assert without_token.post(change_page(endpoint, step)).status_code == 403
    assert may_change.get(change_page(endpoint, step)).status_code == 405

    assert secrets_of(endpoint) == before


def test_a_secret_that_is_typed_in_ends_the_rotation(admin: Client):
    endpoint = EndpointFactory()
    rotation.stage(endpoint, NEW_SECRET, actor="alice")
    typed = "typed-in-by-hand-0123456789abcdef"

    admin.post(change_page(endpoint), form_of(endpoint, secret=typed))

    assert secrets_of(endpoint) == [typed]


def test_saving_the_form_without_a_secret_leaves_the_rotation_as_it_is(admin: Client):
    endpoint = EndpointFactory()
    rotation.stage(endpoint, NEW_SECRET, actor="alice")

    admin.post(change_page(endpoint), form_of(endpoint, name="renamed"))

    assert WebhookEndpoint.objects.get().name == "renamed"
    assert secrets_of(endpoint) == [SECRET, NEW_SECRET]


@pytest.mark.django_db(transaction=True)
def test_a_form_that_is_saved_during_a_step_does_not_undo_it(
    admin: Client, monkeypatch: pytest.MonkeyPatch
):
    endpoint = EndpointFactory()
    rotation.stage(endpoint, NEW_SECRET, actor="alice")
    save = WebhookEndpoint.save
    promoting = threading.Thread(target=lambda: promote_and_hang_up(endpoint))

    def save_late(self: WebhookEndpoint, *args: Any, **kwargs: Any) -> None:
        promoting.start()
        wait_until(lambda: promoted(endpoint) or somebody_waits_for_a_lock())
        save(self, *args, **kwargs)

    monkeypatch.setattr(WebhookEndpoint, "save", save_late)

    admin.post(change_page(endpoint), form_of(endpoint, name="renamed"))
    promoting.join(timeout=10)

    assert WebhookEndpoint.objects.get().name == "renamed"
    assert secrets_of(endpoint) == [NEW_SECRET, SECRET]


def promote_and_hang_up(endpoint: WebhookEndpoint) -> None:
    rotation.make_current(endpoint, NEW_SECRET, actor="bob", proof="probe")
    connection.close()


def promoted(endpoint: WebhookEndpoint) -> bool:
    return secrets_of(endpoint)[0] == NEW_SECRET


def somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])
