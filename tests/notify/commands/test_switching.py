from __future__ import annotations

import pytest
from django.core.management import CommandError

from notify.models import AuditEntry, WebhookEndpoint
from tests.notify.commands.calling import webhook
from tests.notify.factories import EndpointFactory

pytestmark = pytest.mark.django_db


def test_an_endpoint_is_disabled_and_enabled_by_name():
    endpoint = EndpointFactory(name="chat")

    assert webhook("disable", "chat") == "chat is disabled\n"
    endpoint.refresh_from_db()
    assert not endpoint.enabled
    assert webhook("disable", "chat") == "chat was disabled already\n"

    assert webhook("enable", "chat") == "chat is enabled\n"
    endpoint.refresh_from_db()
    assert endpoint.enabled
    assert webhook("enable", "chat") == "chat was enabled already\n"

    entries = AuditEntry.objects.order_by("pk")
    assert [entry.action for entry in entries] == [
        "webhook.endpoint_disabled",
        "webhook.endpoint_enabled",
    ]
    assert entries[0].actor.startswith("command line (")


def test_one_that_is_held_back_is_resumed():
    endpoint = EndpointFactory(name="chat", breaker=WebhookEndpoint.Breaker.PARKED)

    assert webhook("resume", "chat") == "chat is tried again now\n"
    endpoint.refresh_from_db()
    assert endpoint.breaker == WebhookEndpoint.Breaker.CLOSED
    assert "has nothing to resume" in webhook("resume", "chat")


def test_one_that_there_is_not_is_refused_with_those_that_there_are():
    EndpointFactory(name="chat")

    with pytest.raises(CommandError, match=r"no endpoint 'cat'; there are: chat"):
        webhook("disable", "cat")
