from __future__ import annotations

import datetime as dt

import pytest
from pytest_django import Settings

from notify.delivery import ASK_AGAIN, Signal, Verdict, judge, retry_after, verdict_of
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


def test_every_status_has_the_contracts_verdict():
    wrong = {}
    for status in range(100, 600):
        found = judge(Exchange(status=status, duration=NO_TIME), now=NOW)
        cause = "" if found.verdict is Verdict.COMPLETED else f"HTTP {status}"
        if not verdict_of(status) is found.verdict is expected(
            status
        ) or not found.cause.startswith(cause):
            wrong[status] = found
    assert wrong == {}


def test_which_4xx_ask_for_another_try_is_a_setting():
    wanted = {404, 423}
    retried = [
        status
        for status in range(400, 500)
        if verdict_of(status, ask_again=wanted) is Verdict.RETRY
    ]
    others = [*range(100, 400), *range(500, 600)]

    assert retried == [404, 423]
    assert all(verdict_of(s, ask_again=wanted) is verdict_of(s) for s in others)
    assert verdict_of(429, ask_again=()) is Verdict.PERMANENT
    assert (
        judge(Exchange(status=404, duration=NO_TIME), now=NOW, ask_again={404}).verdict
        is Verdict.RETRY
    )


@pytest.mark.parametrize("status", [401, 403])
def test_what_is_tried_again_by_the_setting_is_no_refusal_of_us(status: int):
    """Or the event dies at its first answer, setting or not."""
    exchange = Exchange(status=status, duration=NO_TIME)

    found = judge(exchange, now=NOW, ask_again={status})

    assert (found.verdict, found.signal) == (Verdict.RETRY, None)
    assert judge(exchange, now=NOW).signal is Signal.REFUSED


def test_the_settings_default_is_the_contracts(settings: Settings):
    assert settings.NOTIFY_WEBHOOK_RETRY_STATUSES == ASK_AGAIN == {408, 425, 429}


def test_who_is_gone_is_gone_whatever_the_setting_says():
    assert verdict_of(410, ask_again={410}) is Verdict.PERMANENT


def test_an_answer_may_say_something_about_the_endpoint():
    found = {
        status: judge(Exchange(status=status, duration=NO_TIME), now=NOW).signal
        for status in range(100, 600)
    }

    assert {status: signal for status, signal in found.items() if signal} == {
        401: Signal.REFUSED,
        403: Signal.REFUSED,
        410: Signal.GONE,
    }


@pytest.mark.parametrize(
    ("status", "date", "signal"),
    [
        (401, "Sun, 29 Nov 2026 12:06:52 GMT", Signal.SKEWED),
        (403, "Sun, 29 Nov 2026 11:53:08 GMT", Signal.SKEWED),
        (400, "Sun, 29 Nov 2026 12:06:52 GMT", Signal.SKEWED),
        (400, "Sun, 29 Nov 2026 12:04:00 GMT", None),
        (401, "Sun, 29 Nov 2026 12:04:00 GMT", Signal.REFUSED),
        (401, "Sun, 29 Nov 2026 14:00:00 +0200", Signal.REFUSED),
        (401, "Sun, 99 Nov 2026 12:06:52 GMT", Signal.REFUSED),
        (401, "Fri, 31 Dec 9999 23:59:59 -2359", Signal.REFUSED),
        (404, "Sun, 29 Nov 2026 12:06:52 GMT", None),
        (500, "Sun, 29 Nov 2026 12:06:52 GMT", None),
        (204, "Sun, 29 Nov 2026 12:06:52 GMT", None),
    ],
)
def test_a_refusal_by_a_clock_that_is_minutes_off_is_told_apart(
    status: int, date: str, signal: Signal | None
):
    exchange = Exchange(status=status, date=date, duration=NO_TIME)

    assert judge(exchange, now=NOW).signal is signal


@pytest.mark.parametrize(
    ("date", "words"),
    [
        ("Sun, 29 Nov 2026 13:06:52 GMT", "its clock is 4,012 s ahead of ours"),
        ("Sun, 29 Nov 2026 11:53:08 GMT", "its clock is 412 s behind ours"),
    ],
)
def test_the_cause_says_how_far_the_clock_is_off(date: str, words: str):
    exchange = Exchange(status=401, date=date, duration=NO_TIME)

    assert judge(exchange, now=NOW).cause == f"HTTP 401 Unauthorized; {words}"


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


@pytest.mark.parametrize("now", ["11:50:00", "12:00:00", "12:10:00"])
def test_a_date_to_wait_for_is_by_the_receivers_own_clock(now: str):
    """Where that is behind, it would be in our past: a try earlier than asked."""
    exchange = Exchange(
        status=503,
        retry_after="Sun, 29 Nov 2026 12:02:00 GMT",
        date=f"Sun, 29 Nov 2026 {now} GMT",
        duration=NO_TIME,
    )
    theirs = dt.datetime.fromisoformat(f"2026-11-29T{now}+00:00")
    asked = max(NOW + dt.timedelta(minutes=2) - theirs, NO_TIME)

    assert judge(exchange, now=NOW).retry_after == asked


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
