from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from notify.models import AuditEntry
from tests.notify.checkup import receivers
from tests.notify.commands.calling import webhook
from tests.notify.factories import EndpointFactory
from tests.notify.sinks import Sink

pytestmark = pytest.mark.django_db


def webhook_to_terminal(*arguments: str, **options: bool) -> None:
    call_command("webhook", "doctor", "chat", *arguments, **options)


def test_a_receiver_that_does_what_it_must_is_a_success(sink: Sink):
    sink.behave = receivers.strict
    EndpointFactory(name="chat", url=sink.url, checkup_allowed=True)

    lines = webhook("doctor", "chat").splitlines()

    assert [line.split()[0] for line in lines[:3]] == ["ok", "ok", "warning"]
    assert "ok       forged signature  refuses a signature that is not ours" in str(
        lines
    )
    assert lines[-1].startswith("chat does what it must; no TLS")
    assert AuditEntry.objects.get().actor.startswith("command line (")


def test_a_receiver_that_accepts_forgeries_is_a_failure_for_scripts(
    sink: Sink, capsys: pytest.CaptureFixture[str]
):
    EndpointFactory(name="chat", url=sink.url, checkup_allowed=True)

    with pytest.raises(SystemExit) as ended:
        webhook_to_terminal("--json")
    printed = json.loads(capsys.readouterr().out)

    assert ended.value.code == 1
    assert printed["ok"] is False
    assert {f["step"]: f["grade"] for f in printed["findings"]}[
        "forged signature"
    ] == "failed"


def test_what_is_wrong_is_red_on_a_terminal(
    sink: Sink, capsys: pytest.CaptureFixture[str]
):
    EndpointFactory(name="chat", url=sink.url, checkup_allowed=True)

    with pytest.raises(SystemExit):
        webhook_to_terminal(force_color=True)

    printed = capsys.readouterr().out
    assert "\x1b[31;1mfailed \x1b[0m  forged signature  accepts forgeries" in printed


def test_without_an_agreement_the_call_is_wrong_and_says_how_to_agree(sink: Sink):
    EndpointFactory(name="chat", url=sink.url)

    with pytest.raises(CommandError, match="May be checked up") as refused:
        webhook("doctor", "chat")

    assert refused.value.returncode == 2
    assert sink.connections == []


def test_what_cannot_be_signed_is_a_failure(sink: Sink):
    endpoint = EndpointFactory(name="chat", url=sink.url, checkup_allowed=True)
    type(endpoint).objects.update(encrypted_secret="not encrypted by this key")

    with pytest.raises(CommandError, match="ACW_ENCRYPTION_KEYS") as refused:
        webhook("doctor", "chat")

    assert refused.value.returncode == 1
