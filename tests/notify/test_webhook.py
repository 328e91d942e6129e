"""``manage.py webhook``."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from notify.models import AuditEntry, WebhookAttempt, WebhookEndpoint
from tests.notify import sinks
from tests.notify.factories import SECRET, TOPIC, AttemptFactory, EndpointFactory
from tests.notify.sinks import Sink

pytestmark = pytest.mark.django_db
URL = "https://hooks.example/T000/SECRET-TOKEN"


def webhook(*arguments: str) -> str:
    stdout = io.StringIO()
    call_command("webhook", *arguments, stdout=stdout)
    return stdout.getvalue()


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


def test_an_endpoint_is_added_and_its_secret_printed_once():
    told = webhook("add", "chat", URL, "--topics", f"{TOPIC}, {TOPIC}")

    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.name, endpoint.url, endpoint.topics) == ("chat", URL, [TOPIC])
    assert endpoint.signing_secret() in told
    assert "SECRET-TOKEN" not in told
    assert AuditEntry.objects.get().actor.startswith("command line (")


def test_a_secret_is_taken_from_standard_input_and_not_printed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SECRET}\n"))

    told = webhook("add", "chat", URL, "--secret-stdin")

    assert WebhookEndpoint.objects.get().signing_secret() == SECRET
    assert SECRET not in told
    assert "no topics yet" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chat", "ftp://host"], "must begin with https:// or http://"),
        (["chat", URL, "--topics", "test.hapened"], "did you mean 'test.happened'"),
        (["chat", URL, "--topics", "webhook.test"], "never sent as one"),
        (["taken", URL], "already exists"),
    ],
    ids=lambda value: str(value),
)
def test_what_breaks_a_rule_is_a_wrong_call(arguments: list[str], message: str):
    EndpointFactory(name="taken")

    with pytest.raises(CommandError, match=message) as refused:
        webhook("add", *arguments)

    assert refused.value.returncode == 2
    assert WebhookEndpoint.objects.count() == 1


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


def test_a_name_that_there_is_not_is_a_wrong_call():
    EndpointFactory(name="chat")

    with pytest.raises(CommandError, match="no endpoint 'chta'; there are: chat") as no:
        webhook("test", "chta")

    assert no.value.returncode == 2
