from __future__ import annotations

import pytest
from django.core.management import CommandError

from notify.models import AuditEntry
from tests.notify import sinks
from tests.notify.commands.calling import webhook
from tests.notify.factories import EndpointFactory
from tests.notify.sinks import Sink

pytestmark = pytest.mark.django_db
URL = "https://hooks.example/T000/SECRET-TOKEN"


def test_a_test_event_is_sent_and_its_outcome_printed(sink: Sink):
    EndpointFactory(name="chat", url=sink.url)

    told = webhook("test", "chat")

    assert told.startswith("Delivered: HTTP 204 in ")
    assert sink.requests[0].headers["X-ACW-Topic"] == "webhook.test"
    assert AuditEntry.objects.get().action == "webhook.test_sent"


def test_a_test_event_that_is_not_delivered_is_a_failure(sink: Sink):
    sink.behave = sinks.answer(401)
    EndpointFactory(name="chat", url=sink.url)

    with pytest.raises(CommandError, match="HTTP 401 Unauthorized") as refused:
        webhook("test", "chat")

    assert refused.value.returncode == 1
