from __future__ import annotations

import io

import pytest
from django.core.management import CommandError

from notify import rotation, signing
from notify.models import AuditEntry, WebhookEndpoint
from tests.notify.commands.calling import webhook
from tests.notify.factories import SECRET, EndpointFactory
from tests.notify.sinks import Sink
from tests.notify.verifying import Receiver, by_the_contract

pytestmark = pytest.mark.django_db
NEW_SECRET = "the-next-secret-0123456789abcdef"


@pytest.fixture
def endpoint(sink: Sink) -> WebhookEndpoint:
    sink.behave = Receiver(by_the_contract, SECRET)
    return EndpointFactory(name="chat", url=sink.url)


def secrets_of(endpoint: WebhookEndpoint) -> list[str]:
    endpoint.refresh_from_db()
    return rotation.signing_secrets(endpoint)


def test_a_secret_is_changed_in_three_steps(endpoint: WebhookEndpoint, sink: Sink):
    told = webhook("rotate", "chat")
    _, new = secrets_of(endpoint)
    assert new in told
    assert signing.standard_form(new) in told
    assert "webhook promote chat" in told

    sink.behave = Receiver(by_the_contract, new)
    told = webhook("promote", "chat")
    assert new not in told
    assert "webhook retire chat" in told
    assert secrets_of(endpoint) == [new, SECRET]

    webhook("retire", "chat")
    assert secrets_of(endpoint) == [new]
    actors = set(AuditEntry.objects.values_list("actor", flat=True))
    assert len(actors) == 1
    assert actors.pop().startswith("command line (")


def test_a_secret_of_ones_own_is_read_from_standard_input_and_not_printed(
    endpoint: WebhookEndpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{NEW_SECRET}\n"))

    told = webhook("rotate", "chat", "--secret-stdin")

    assert secrets_of(endpoint) == [SECRET, NEW_SECRET]
    assert NEW_SECRET not in told
    assert signing.standard_form(NEW_SECRET) not in told


def test_a_secret_that_the_receiver_has_not_is_not_promoted(endpoint: WebhookEndpoint):
    webhook("rotate", "chat")

    with pytest.raises(CommandError, match="did not take a test event") as refused:
        webhook("promote", "chat")

    assert refused.value.returncode == 1
    assert secrets_of(endpoint)[0] == SECRET
    webhook("promote", "chat", "--without-proof")
    assert secrets_of(endpoint)[1] == SECRET


def test_a_staged_secret_is_taken_back(endpoint: WebhookEndpoint):
    webhook("rotate", "chat")

    webhook("abandon", "chat")

    assert secrets_of(endpoint) == [SECRET]


@pytest.mark.parametrize("verb", ["promote", "retire", "abandon"])
def test_a_step_that_does_not_follow_fails_in_one_line(
    endpoint: WebhookEndpoint, verb: str
):
    with pytest.raises(CommandError, match=r"^no ") as refused:
        webhook(verb, "chat")

    assert refused.value.returncode == 1


def test_a_secret_that_breaks_a_rule_is_a_wrong_call(
    endpoint: WebhookEndpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))

    with pytest.raises(CommandError, match="24 to 64 characters") as refused:
        webhook("rotate", "chat", "--secret-stdin")

    assert refused.value.returncode == 2
