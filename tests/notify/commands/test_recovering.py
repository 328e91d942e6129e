from __future__ import annotations

import io
import re
import sys

import pytest
from django.core.management import CommandError

from notify.models import WebhookEndpoint, WebhookRecovery
from tests.notify.commands.calling import webhook
from tests.notify.factories import EndpointFactory, RecoveryFactory, delivery_to

pytestmark = pytest.mark.django_db


@pytest.fixture
def chat() -> WebhookEndpoint:
    """An endpoint with three dead deliveries."""
    endpoint: WebhookEndpoint = EndpointFactory(name="chat")
    for _ in range(3):
        delivery_to(endpoint, dead=True)
    return endpoint


def test_a_dry_run_says_how_many_and_begins_nothing(chat: WebhookEndpoint):
    said = webhook("recover", "chat", "--since", "2h", "--per-minute", "2", "--dry-run")

    assert re.fullmatch(
        r"3 dead since [-0-9]+ [:0-9]+ UTC for chat; 2 a minute take 1m 30s\n", said
    )
    assert not WebhookRecovery.objects.exists()


def test_it_begins_with_the_count_that_it_says(chat: WebhookEndpoint):
    said = webhook("recover", "chat", "--since", "2h", "--yes")

    recovery = WebhookRecovery.objects.get()
    assert f"Recovery {recovery.pk} has begun" in said
    assert (recovery.counted, recovery.per_minute) == (3, 60)
    assert recovery.requested_by.startswith("command line (")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("typed", "begins"), [("y\n", True), ("\n", False), ("", False)], ids=repr
)
def test_whoever_is_at_a_terminal_is_asked(
    chat: WebhookEndpoint, monkeypatch: pytest.MonkeyPatch, typed: str, begins: bool
):
    monkeypatch.setattr(sys, "stdin", Terminal(typed))

    if begins:
        webhook("recover", "chat", "--since", "2h")
    else:
        with pytest.raises(CommandError, match="nothing was resent"):
            webhook("recover", "chat", "--since", "2h")

    assert WebhookRecovery.objects.exists() is begins


def test_where_standard_input_is_closed_nobody_is_asked(
    chat: WebhookEndpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stdin", None)

    webhook("recover", "chat", "--since", "2h")

    assert WebhookRecovery.objects.exists()


def test_it_is_paused_resumed_and_cancelled(chat: WebhookEndpoint):
    webhook("recover", "chat", "--since", "2h", "--yes")

    for turn, done, state in (
        ("--pause", "1 paused", "paused"),
        ("--resume", "1 resumed", "running"),
        ("--cancel", "1 cancelled", "cancelled"),
    ):
        assert webhook("recover", "chat", turn) == f"{done}\n"
        assert WebhookRecovery.objects.get().state == state

    with pytest.raises(CommandError, match="no recovery of chat is running or paused"):
        webhook("recover", "chat", "--pause")


def test_a_turn_that_does_not_apply_says_why(chat: WebhookEndpoint):
    RecoveryFactory(endpoint=chat, state="paused")

    with pytest.raises(CommandError, match="0 paused, 1 skipped: it is paused"):
        webhook("recover", "chat", "--pause")


def test_without_a_time_it_lists_what_there_is(chat: WebhookEndpoint):
    assert "--since 2h" in webhook("recover", "chat")
    RecoveryFactory(endpoint=chat, reason="the endpoint is disabled", resent=2)

    header, row = webhook("recover", "chat").splitlines()

    assert header.split()[:2] == ["id", "state"]
    assert "running" in row
    assert row.endswith("the endpoint is disabled")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--since", "yesterday", "accepted: how long ago"),
        ("--per-minute", "0", "from 1 to 6000"),
    ],
    ids=["since", "pace"],
)
def test_what_cannot_be_read_is_a_wrong_call(option: str, value: str, message: str):
    with pytest.raises(CommandError, match=message):
        webhook("recover", "chat", option, value)


def test_a_refusal_is_told(chat: WebhookEndpoint):
    RecoveryFactory(endpoint=chat)

    with pytest.raises(CommandError, match="a recovery of chat is running already"):
        webhook("recover", "chat", "--since", "2h", "--yes")
