from __future__ import annotations

import datetime as dt
import email.utils
import uuid

from notify.delivery import judge
from notify.exchange import Exchange, Failure
from notify.explanations import Explanation, explain
from notify.models import WebhookAttempt

NOW = dt.datetime(2026, 11, 29, 12, 0, tzinfo=dt.UTC)
NO_TIME = dt.timedelta(0)


def attempt_that(exchange: Exchange) -> WebhookAttempt:
    """Its row, as the sender would close it."""
    judgement = judge(exchange, now=NOW)
    return WebhookAttempt(
        job_id=uuid.UUID(int=1),
        started_at=NOW,
        finished_at=NOW,
        status=exchange.status,
        verdict=judgement.verdict.value,
        failure=exchange.failure or "",
        cause=judgement.cause,
    )


def answered(status: int, date: dt.datetime | None = None) -> WebhookAttempt:
    header = None if date is None else email.utils.format_datetime(date)
    return attempt_that(Exchange(status=status, duration=NO_TIME, date=header))


def failed(failure: Failure, cause: str) -> WebhookAttempt:
    return attempt_that(Exchange(failure=failure, cause=cause, duration=NO_TIME))


def ended(verdict: str, cause: str = "") -> WebhookAttempt:
    return WebhookAttempt(
        job_id=uuid.UUID(int=1),
        started_at=NOW,
        finished_at=NOW,
        verdict=verdict,
        failure="",
        cause=cause,
    )


def test_every_failure_has_a_cause_and_an_advice_of_its_own():
    told = {failure: explain(failed(failure, "it broke")) for failure in Failure}

    assert all("it broke" in explanation.what for explanation in told.values())
    assert len({explanation.what for explanation in told.values()}) == len(Failure)
    assert len({explanation.to_do for explanation in told.values()}) == len(Failure)


def test_every_status_but_a_success_is_explained_and_has_an_advice():
    for status in range(100, 600):
        explanation = explain(answered(status))
        if 200 <= status <= 299:
            assert explanation == Explanation(what="The receiver has it.")
        else:
            assert str(status) in explanation.what
            assert "no status of HTTP" not in explanation.what
            assert explanation.to_do.endswith(
                ("Then resend it.", "while attempts are left.")
            )
    assert "no status of HTTP" in explain(answered(999)).what


CASES: list[tuple[WebhookAttempt, str, str]] = [
    (
        failed(Failure.TLS, "the certificate is refused: certificate has expired"),
        "cannot be trusted: the certificate is refused: certificate has expired.",
        "owner has to renew its certificate. It is tried again by itself",
    ),
    (
        failed(
            Failure.TLS,
            "the certificate is refused: Hostname mismatch, certificate is not valid for 'x'.",
        ),
        "Hostname mismatch",
        "correct the host in the endpoint's URL",
    ),
    (
        failed(Failure.TLS, "TLS failed: wrong version number"),
        "wrong version number",
        "must speak TLS at the port",
    ),
    (
        failed(Failure.BLOCKED, "h has the address 10.0.0.1"),
        "webhooks may not reach the receiver's address: h has",
        "NOTIFY_WEBHOOK_ALLOW_NETWORKS",
    ),
    (answered(301), "has moved", "set it as the endpoint's URL. Then resend it."),
    (answered(302), "perhaps to a page to log in", "answers by itself"),
    (answered(401), "does not take it for ours", "has the endpoint's secret"),
    (answered(404), "knows nothing at that address", "Correct the path"),
    (answered(410), "that disables the endpoint", "correct the endpoint and en"),
    (answered(418), "refuses the event (HTTP 418", "into its log. Then resend it."),
    (answered(429), "asks for time", "tried again by itself while attempts are"),
    (answered(503), "out of service for the moment", "tried again by itself"),
    (
        answered(401, NOW - dt.timedelta(seconds=412)),
        "its clock is 412 s behind ours",
        "Set the clock that is wrong",
    ),
    (
        answered(400, NOW + dt.timedelta(hours=1)),
        "its clock is 3,600 s ahead of ours",
        "Set the clock that is wrong",
    ),
    (
        ended("retry", "none of the keys in ACW_ENCRYPTION_KEYS decrypts"),
        "It was not sent: none of the keys in ACW_ENCRYPTION_KEYS",
        "Mend that first. It is tried again",
    ),
    (ended("skipped", "the endpoint was deleted"), "the endpoint was deleted.", ""),
    (ended("superseded"), "A later event about the same thing", ""),
    (ended("repeated"), "while its secret was being changed", "see the attempt"),
    (
        WebhookAttempt(started_at=NOW, verdict="unknown"),
        "whether the receiver has the event is not known",
        "tried again by itself",
    ),
]


def test_what_was_the_matter_and_what_to_do():
    for attempt, what, to_do in CASES:
        explanation = explain(attempt)

        assert what in explanation.what
        assert to_do in explanation.to_do
        assert bool(to_do) == bool(explanation.to_do)


def test_a_refusal_after_a_change_of_the_secret_says_so():
    refused = answered(403)

    before = explain(refused, secret_changed_at=NOW - dt.timedelta(minutes=1))
    after = explain(refused, secret_changed_at=NOW + dt.timedelta(minutes=1))

    assert "The secret was changed before that, on 2026-11-29 at 11:59" in before.what
    assert "was changed" not in after.what
    missing = explain(answered(404), secret_changed_at=NOW)
    assert "was changed" not in missing.what


def test_what_follows_is_what_becomes_of_the_delivery_where_that_is_known():
    for attempt in (answered(401), answered(500), failed(Failure.DNS, "x")):
        assert explain(attempt, goes_on=True).to_do.endswith(" tried again by itself.")
        assert explain(attempt, goes_on=False).to_do.endswith("Then resend it.")


def test_of_a_test_event_nothing_follows():
    """Its sender sees what came of it; it is neither tried again nor resent."""
    for attempt in (answered(401), answered(500), failed(Failure.DNS, "x")):
        attempt.job_id = None
        to_do = explain(attempt).to_do
        assert to_do.endswith(".")
        assert "again" not in to_do
        assert "resend" not in to_do


def test_an_explanation_reads_as_sentences():
    assert str(explain(answered(204))) == "The receiver has it."
    assert str(explain(answered(500))) == (
        "The receiver failed on its side (HTTP 500 Internal Server Error). Look into its log at the time of the "
        "attempt. It is tried again by itself while attempts are left."
    )


def test_what_nobody_knows_the_end_of_is_resent_once_nobody_tries_it_any_more():
    cut_off = WebhookAttempt(started_at=NOW, finished_at=None)

    assert "tried again by itself" in explain(cut_off, goes_on=True).to_do
    assert explain(cut_off, goes_on=False).to_do.startswith("Resend it")
    assert explain(cut_off, goes_on=False, resendable=False).to_do == ""
