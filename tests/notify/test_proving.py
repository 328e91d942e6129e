from __future__ import annotations

import pytest
from django.db import connection

from notify import proving, rotation
from notify.exceptions import RotationRefused
from notify.models import AuditEntry, WebhookAttempt, WebhookEndpoint
from tests.notify import sinks
from tests.notify.factories import SECRET, EndpointFactory
from tests.notify.sinks import Connection, Received, Sink
from tests.notify.verifying import (
    Check,
    Receiver,
    by_standard_webhooks,
    by_the_contract,
)

pytestmark = pytest.mark.django_db
NEW_SECRET = "the-next-secret-0123456789abcdef"
WHO = "alice"
CHECKS = pytest.mark.parametrize("check", [by_the_contract, by_standard_webhooks])


def staged(sink: Sink, **values: object) -> WebhookEndpoint:
    endpoint: WebhookEndpoint = EndpointFactory(url=sink.url, **values)
    rotation.stage(endpoint, NEW_SECRET, actor=WHO)
    return endpoint


def secrets_of(endpoint: WebhookEndpoint) -> list[str]:
    endpoint.refresh_from_db()
    return rotation.signing_secrets(endpoint)


@CHECKS
def test_a_receiver_with_the_new_secret_alone_proves_it(check: Check, sink: Sink):
    endpoint = staged(sink, enabled=False)
    sink.behave = Receiver(check, NEW_SECRET)

    proving.promote(endpoint, actor=WHO)

    [probe] = sink.requests
    assert probe.headers["X-ACW-Topic"] == "webhook.test"
    assert "X-ACW-Signature-Other" not in probe.headers
    assert secrets_of(endpoint) == [NEW_SECRET, SECRET]
    row = WebhookAttempt.objects.get()
    assert (row.topic, row.verdict, row.job_id) == ("webhook.test", "completed", None)
    probed, promoted = AuditEntry.objects.order_by("id")[1:]
    assert probed.action == "webhook.secret_probed"
    assert probed.data["verdict"] == "completed"
    assert (promoted.actor, promoted.data["proof"]) == (WHO, "probe")


@CHECKS
def test_a_receiver_with_the_old_secret_proves_nothing_and_stays_served(
    check: Check, sink: Sink
):
    endpoint = staged(sink)
    sink.behave = Receiver(check, SECRET)

    with pytest.raises(RotationRefused, match="HTTP 401 Unauthorized"):
        proving.promote(endpoint, actor=WHO)

    assert len(sink.requests) == 1
    assert secrets_of(endpoint) == [SECRET, NEW_SECRET]
    row = WebhookAttempt.objects.get()
    assert (row.verdict, row.status) == ("permanent", 401)
    assert AuditEntry.objects.latest("id").data["verdict"] == "permanent"


def test_without_proof_nothing_is_sent(sink: Sink):
    endpoint = staged(sink)

    proving.promote(endpoint, actor=WHO, without_proof=True)

    assert sink.connections == []
    assert secrets_of(endpoint) == [NEW_SECRET, SECRET]
    assert AuditEntry.objects.latest("id").data["proof"] == "none"


def test_what_is_not_staged_cannot_be_proved(sink: Sink):
    endpoint = EndpointFactory(url=sink.url)

    with pytest.raises(RotationRefused, match="no new secret is staged"):
        proving.promote(endpoint, actor=WHO)

    assert sink.connections == []


@pytest.mark.django_db(transaction=True)
def test_a_secret_that_is_taken_back_during_the_probe_is_not_promoted(sink: Sink):
    endpoint = staged(sink)

    def take_it_back(answering: Connection, request: Received) -> None:
        rotation.abandon(WebhookEndpoint.objects.get(pk=endpoint.pk), actor="bob")
        connection.close()
        sinks.answer(204)(answering, request)

    sink.behave = take_it_back

    with pytest.raises(RotationRefused, match="changed meanwhile"):
        proving.promote(endpoint, actor=WHO)

    assert secrets_of(endpoint) == [SECRET]
