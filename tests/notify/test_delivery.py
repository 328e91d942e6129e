from __future__ import annotations

import datetime as dt

import pytest

from notify.delivery import Verdict, judge, retry_after, verdict_of
from notify.exchange import Exchange, Failure
from notify.models import WebhookAttempt

NOW = dt.datetime(2026, 11, 29, 12, 0, 0, tzinfo=dt.UTC)
NO_TIME = dt.timedelta(0)


def expected(status: int) -> Verdict:
    if status // 100 == 2:
        return Verdict.COMPLETED
    if status in (301, 308):
        return Verdict.PERMANENT
    if status // 100 == 4 and status not in (408, 425, 429):
        return Verdict.PERMANENT
    return Verdict.RETRY


@pytest.mark.parametrize("status", range(100, 600))
def test_every_status_has_the_contracts_verdict(status: int):
    judgement = judge(Exchange(status=status, duration=NO_TIME), now=NOW)

    assert verdict_of(status) is expected(status)
    assert judgement.verdict is expected(status)
    assert judgement.cause.startswith(
        "" if judgement.verdict is Verdict.COMPLETED else f"HTTP {status}"
    )


@pytest.mark.parametrize("status", [0, 99, 600, 999])
def test_a_status_that_no_standard_knows_is_tried_again(status: int):
    assert verdict_of(status) is Verdict.RETRY


@pytest.mark.parametrize("failure", Failure)
def test_every_failure_has_a_verdict(failure: Failure):
    judgement = judge(
        Exchange(failure=failure, cause="because", duration=NO_TIME), now=NOW
    )

    refused = failure in (Failure.BLOCKED, Failure.INVALID)
    assert judgement.verdict is (Verdict.PERMANENT if refused else Verdict.RETRY)
    assert judgement.cause == "because"
    assert judgement.retry_after is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 5 ", 5),
        ("0", 0),
        ("3600", 3600),
        ("3601", 3600),
        ("99999999999999999999", 3600),
        ("Sun, 29 Nov 2026 12:02:00 GMT", 120),
        ("Sun, 29 Nov 2026 12:02:00 -0000", 120),
        ("Sun, 29 Nov 2026 11:00:00 GMT", 0),
        ("Sun, 29 Nov 2099 12:00:00 GMT", 3600),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_at_most_an_hour(value: str, seconds: int):
    assert retry_after(value, now=NOW) == dt.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "-5",
        "1e9",
        "1.5",
        "soon",
        "²",
        "٣",
        "5, 10",
        "9" * 100,
        "Sun, 99 Nov 2026 12:00:00 GMT",
    ],
)
def test_retry_after_that_is_neither_is_ignored(value: str | None):
    assert retry_after(value, now=NOW) is None


@pytest.mark.parametrize("status", [302, 408, 425, 429, 500, 503])
def test_whoever_asks_for_another_try_may_say_when(status: int):
    exchange = Exchange(status=status, retry_after="120", duration=NO_TIME)

    assert judge(exchange, now=NOW).retry_after == dt.timedelta(seconds=120)


@pytest.mark.parametrize("status", [200, 301, 404])
def test_without_another_try_there_is_nothing_to_wait_for(status: int):
    exchange = Exchange(status=status, retry_after="120", duration=NO_TIME)

    assert judge(exchange, now=NOW).retry_after is None


@pytest.mark.parametrize(
    ("status", "redirect", "cause"),
    [
        (301, "https://new.example", "HTTP 301: moved to https://new.example; "),
        (308, None, "HTTP 308: moved to an address that it does not name; "),
        (302, "https://a.example", "HTTP 302: redirects to https://a.example; "),
        (302, None, "HTTP 302 Found"),
        (404, None, "HTTP 404 Not Found"),
        (599, None, "HTTP 599"),
    ],
)
def test_the_cause_says_what_the_receiver_answered(
    status: int, redirect: str | None, cause: str
):
    exchange = Exchange(status=status, redirect=redirect, duration=NO_TIME)

    assert judge(exchange, now=NOW).cause.startswith(cause)


def test_every_verdict_can_be_recorded():
    assert {verdict.value for verdict in Verdict} < set(WebhookAttempt.Verdict.values)
