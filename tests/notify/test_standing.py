from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone
from pytest_django import Settings

from notify import standing
from notify.models import WebhookEndpoint
from tests.notify.factories import AttemptFactory, EndpointFactory

NOW = timezone.now()


@pytest.mark.parametrize(
    ("fields", "word", "reason"),
    [
        ({}, "well", ""),
        ({"enabled": False}, "disabled", "by a person"),
        (
            {"enabled": False, "disabled_reason": "HTTP 410 Gone"},
            "disabled",
            "HTTP 410 Gone",
        ),
        ({"enabled": False, "breaker": "open"}, "disabled", "by a person"),
        (
            {
                "breaker": "parked",
                "breaker_reason": "HTTP 401",
                "breaker_until": NOW + dt.timedelta(days=2, minutes=30),
            },
            "parked",
            "HTTP 401; tried again in 2d",
        ),
        (
            {"breaker": "open", "breaker_until": NOW},
            "open",
            "the next delivery tries it",
        ),
        (
            {"breaker": "recovering", "breaker_reason": "", "breaker_until": NOW},
            "recovering",
            "",
        ),
    ],
    ids=["well", "by hand", "by ACW", "disabled first", "parked", "open", "recovering"],
)
def test_how_an_endpoint_fares_is_a_word_and_a_reason(fields, word: str, reason: str):
    given = {"disabled_reason": "", "breaker_reason": "", **fields}
    endpoint = WebhookEndpoint(**given)

    assert standing.word(endpoint) == word
    assert standing.reason(endpoint) == reason


def test_why_it_waits_names_what_holds_it_back_first(settings: Settings):
    settings.NOTIFY_WEBHOOK_ENABLED = True
    endpoint = WebhookEndpoint(breaker="open", breaker_reason="HTTP 503")
    assert standing.why_it_waits(endpoint) == "the endpoint's breaker is open: HTTP 503"

    settings.NOTIFY_WEBHOOK_ENABLED = False
    assert standing.why_it_waits(endpoint) == "NOTIFY_WEBHOOK_ENABLED is false"


def test_one_whose_last_deliveries_failed_is_not_well(db: None):
    endpoint = EndpointFactory()
    AttemptFactory(endpoint=endpoint, verdict="permanent", finished_at=NOW)

    assert standing.word(WebhookEndpoint.objects.with_health().get()) == "failing"
