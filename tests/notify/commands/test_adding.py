from __future__ import annotations

import io

import pytest
from django.core.management import CommandError

from notify.models import AuditEntry, WebhookEndpoint
from tests.notify.commands.calling import webhook
from tests.notify.factories import SECRET, TOPIC, EndpointFactory

pytestmark = pytest.mark.django_db
URL = "https://hooks.example/T000/SECRET-TOKEN"


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
