from __future__ import annotations

import json

import pytest
from django.utils import timezone

from notify.models import WebhookAttempt
from tests.notify.commands.calling import webhook
from tests.notify.factories import TOPIC, AttemptFactory, EndpointFactory

pytestmark = pytest.mark.django_db
URL = "https://hooks.example/T000/SECRET-TOKEN"


def test_the_list_shows_endpoints_with_their_health_and_no_secret():
    endpoint = EndpointFactory(name="chat")
    AttemptFactory(
        endpoint=endpoint,
        verdict=WebhookAttempt.Verdict.COMPLETED,
        finished_at=timezone.now(),
    )
    EndpointFactory(name="idle", topics=[], enabled=False)

    header, chat, idle = webhook("list").splitlines()

    assert header.split("  ")[0] == "name"
    assert chat.startswith("chat  https://hooks.example #")
    assert TOPIC in chat
    assert chat.endswith("completed")
    assert idle.split()[-4:] == ["no", "-", "-", "-"]
    assert "SECRET-TOKEN" not in chat + idle


def test_an_empty_list_says_how_to_add():
    assert "webhook add NAME URL" in webhook("list")


def test_the_list_is_there_for_scripts_too():
    EndpointFactory(name="chat")

    [row] = json.loads(webhook("list", "--json"))

    assert row["name"] == "chat"
    assert row["enabled"] is True
    assert row["last_delivered"] is None
    assert "SECRET-TOKEN" not in repr(row)
