from __future__ import annotations

import json

import pytest
from django.utils import timezone

from notify.models import WebhookAttempt
from tests.notify.commands.calling import webhook
from tests.notify.factories import (
    TOPIC,
    AttemptFactory,
    EndpointFactory,
    delivery_to,
)

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def test_the_list_shows_endpoints_with_their_health_and_no_secret():
    endpoint = EndpointFactory(name="chat")
    AttemptFactory(
        endpoint=endpoint,
        verdict=WebhookAttempt.Verdict.COMPLETED,
        finished_at=timezone.now(),
    )
    EndpointFactory(name="idle", topics=[], enabled=False)

    delivery_to(endpoint)

    header, chat, idle, why = webhook("list").splitlines()

    assert header.split("  ")[0] == "name"
    assert chat.startswith("chat  https://hooks.example #")
    assert TOPIC in chat
    assert chat.split()[3] == "well"
    assert "completed" in chat
    assert "  1  " in chat
    assert idle.split()[3:] == ["disabled", "-", "-", "-", "-", "0", "0", "-"]
    assert why == "idle is disabled: by a person"
    assert "SECRET-TOKEN" not in chat + idle


def test_an_empty_list_says_how_to_add():
    assert "webhook add NAME URL" in webhook("list")


def test_the_list_is_there_for_scripts_too():
    EndpointFactory(
        name="chat", breaker="open", breaker_reason="HTTP 503", breaker_until=NOW
    )

    [row] = json.loads(webhook("list", "--json"))

    assert row["name"] == "chat"
    assert row["enabled"] is True
    assert row["topics"] == [TOPIC]
    assert row["last_delivered"] is None
    assert (row["in_flight"], row["waiting"], row["failing_since"]) == (0, 0, None)
    assert row["state"] == "open"
    assert row["reason"] == "HTTP 503; the next delivery tries it"
    assert row["next_try"]
    assert "SECRET-TOKEN" not in repr(row)
