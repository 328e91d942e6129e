"""Whole check-ups of receivers of every kind, over HTTP."""

from __future__ import annotations

import datetime as dt
import socket
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Q
from pytest_django import Settings

from notify import outbound
from notify.checkup.report import Grade, Report, Step
from notify.checkup.run import check_up
from notify.dialing import Resolver
from notify.exceptions import CheckupRefused, EncryptionError
from notify.exchange import Exchange
from notify.models import AuditEntry, WebhookAttempt, WebhookEndpoint
from tests.notify import sinks
from tests.notify.certificates import Authority
from tests.notify.checkup import receivers
from tests.notify.factories import EndpointFactory
from tests.notify.sinks import Behaviour, Received, Sink

pytestmark = pytest.mark.django_db

OK, WARNING, UNKNOWN, FAILED = (
    Grade.PASSED,
    Grade.WARNING,
    Grade.UNKNOWN,
    Grade.FAILED,
)
HOST = "hook.test"


def resolver(*addresses: str) -> Resolver:
    """Has every name at these addresses."""
    return lambda host, port: [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
        for address in addresses
    ]


def checked(sink: Sink, **values: object) -> Report:
    endpoint = EndpointFactory(
        **{"name": "chat", "url": sink.url, "checkup_allowed": True, **values}
    )
    return check_up(endpoint, actor="alice", resolver=resolver("127.0.0.1"))


def grades(report: Report) -> dict[str, Grade]:
    """Of those that are not well."""
    return {f.step.value: f.grade for f in report.findings if f.grade is not OK}


def messages(report: Report) -> dict[Step, str]:
    return {f.step: f.message for f in report.findings}


PLAIN = {"tls": WARNING}
"""What every receiver is told that is here without TLS."""


def test_a_receiver_that_looks_as_the_documentation_says_does_all_that_it_must(
    sink: Sink,
):
    sink.behave = receivers.strict
    report = checked(sink)

    assert report.ok
    assert [finding.step for finding in report.findings] == list(Step)
    assert grades(report) == PLAIN
    told = messages(report)
    assert told[Step.DNS] == "127.0.0.1 is an address, and webhooks may reach it"
    assert told[Step.CONNECT].startswith("connected to 127.0.0.1 (")
    assert told[Step.LATENCY].endswith(" ms of the 10 s that it has")
    assert told[Step.EVENT] == "takes a signed event (HTTP 204)"
    assert told[Step.FORGED] == "refuses a signature that is not ours (HTTP 401)"
    assert told[Step.OLD] == "refuses what was signed 400 s ago (HTTP 401)"
    assert "cannot be seen from outside" in told[Step.DUPLICATE]


def test_a_receiver_that_takes_everything_is_told_what_it_accepts(sink: Sink):
    report = checked(sink)

    assert not report.ok
    wrong = dict.fromkeys(["forged signature", "old timestamp", "altered body"], FAILED)
    assert grades(report) == PLAIN | wrong
    assert report.summary == (
        "chat: accepts forgeries (HTTP 204); accepts old timestamps (HTTP 204); accepts altered bodies (HTTP 204)."
    )
    for finding in report.findings:
        if finding.grade is FAILED:
            assert "docs/webhooks.md" in finding.advice


@pytest.mark.parametrize(
    ("behave", "step", "message"),
    [
        (receivers.without_clock, "old timestamp", "accepts old timestamps (HTTP 204)"),
        (receivers.rewriting, "altered body", "accepts altered bodies (HTTP 204)"),
        (
            receivers.once(),
            "duplicate",
            "does not take the same event again: HTTP 409 Conflict",
        ),
    ],
    ids=["no clock", "no raw body", "no duplicate"],
)
def test_what_a_receiver_leaves_out_is_told_alone(
    sink: Sink, behave: Behaviour, step: str, message: str
):
    sink.behave = behave
    report = checked(sink)

    assert grades(report) == PLAIN | {step: FAILED}
    assert report.summary == f"chat: {message}."


@pytest.mark.parametrize(
    ("answered", "grade", "message"),
    [
        (sinks.answer(400), OK, "refuses a signature that is not ours (HTTP 400)"),
        (
            sinks.answer(500),
            WARNING,
            "does not accept it, and does not refuse it either: HTTP 500 Internal Server Error",
        ),
        (
            sinks.answer(429),
            UNKNOWN,
            "asks to be left alone: HTTP 429 Too Many Requests",
        ),
    ],
    ids=["400", "500", "429"],
)
def test_only_a_refusal_is_a_refusal(
    sink: Sink, answered: Behaviour, grade: Grade, message: str
):
    sink.behave = receivers.then(receivers.ACCEPT, answered)
    report = checked(sink)

    assert messages(report)[Step.FORGED] == message
    assert {f.grade for f in report.findings if f.step is Step.FORGED} == {grade}
    assert report.ok is (grade is not UNKNOWN)


def rest(grade: Grade, *but: Step) -> dict[str, Grade]:
    return {step.value: grade for step in Step if step not in but}


def test_a_receiver_that_refuses_everything_is_not_asked_further(sink: Sink):
    sink.behave = sinks.answer(401)
    report = checked(sink)

    assert not report.ok
    tried = dict.fromkeys(
        ["forged signature", "old timestamp", "altered body", "duplicate"], UNKNOWN
    )
    assert grades(report) == PLAIN | {"event": FAILED} | tried
    assert report.summary == (
        "chat: does not take a signed event: HTTP 401 Unauthorized."
    )
    assert len(sink.requests) == 1


def test_a_redirect_is_told_with_its_host_and_not_followed(sink: Sink):
    sink.behave = sinks.answer(302, {"Location": "https://other.example/SECRET"})
    report = checked(sink)

    assert grades(report)["redirect"] is FAILED
    assert messages(report)[Step.REDIRECT] == (
        "redirects to https://other.example (HTTP 302)"
    )
    assert len(sink.requests) == 1


def test_a_receiver_that_hangs_is_told_so_at_the_latency(sink: Sink):
    sink.behave = sinks.say_nothing
    report = checked(sink, timeout=dt.timedelta(seconds=1))

    assert grades(report) == PLAIN | rest(
        UNKNOWN, Step.DNS, Step.CONNECT, Step.TLS, Step.LATENCY, Step.EVENT
    ) | {"latency": FAILED, "event": FAILED}
    assert messages(report)[Step.LATENCY] == "no complete answer within 1 s"


def test_after_a_request_without_an_answer_no_more_are_sent(sink: Sink):
    sink.behave = receivers.then(receivers.ACCEPT, sinks.say_nothing)
    report = checked(sink, timeout=dt.timedelta(seconds=1))

    assert grades(report) == PLAIN | dict.fromkeys(
        ["forged signature", "old timestamp", "altered body", "duplicate"], UNKNOWN
    )
    assert not report.ok
    assert len(sink.requests) == 2


def test_a_name_is_told_with_its_addresses_and_a_certificate_with_its_days(
    tmp_path: Path, settings: Settings
):
    authority = Authority(tmp_path)
    settings.NOTIFY_WEBHOOK_CA_BUNDLE = str(authority.bundle)
    with Sink(receivers.strict, tls=authority.server_context(HOST)) as sink:
        report = checked(sink, url=f"https://{HOST}:{sink.port}/hook")

    assert report.ok
    told = messages(report)
    assert told[Step.DNS].startswith(
        "hook.test has the address 127.0.0.1, and webhooks may reach it ("
    )
    # The tests' certificates are good for a day.
    assert told[Step.TLS].startswith("the certificate is good for 0 more days (")
    assert grades(report) == {"tls": WARNING}


def test_a_certificate_that_is_refused_is_where_it_ends(tmp_path: Path):
    authority = Authority(tmp_path)
    with Sink(receivers.strict, tls=authority.server_context(HOST)) as sink:
        report = checked(sink, url=f"https://{HOST}:{sink.port}/hook")

    assert grades(report) == rest(UNKNOWN, Step.DNS, Step.CONNECT) | {
        "tls": FAILED,
        "event": FAILED,
    }
    assert messages(report)[Step.TLS].startswith("the certificate is refused: ")
    assert sink.requests == []


def test_an_address_that_webhooks_may_not_reach_is_where_it_ends(
    sink: Sink, settings: Settings
):
    settings.NOTIFY_WEBHOOK_ALLOW_NETWORKS = []
    report = checked(sink)

    assert grades(report) == rest(UNKNOWN) | {"dns": FAILED, "event": FAILED}
    assert "NOTIFY_WEBHOOK_ALLOW_NETWORKS" in messages(report)[Step.DNS]
    assert sink.connections == []


def by_step(requests: list[Received]) -> dict[str, dict[str, str]]:
    steps = ["event", "forged", "old", "altered", "duplicate"]
    return dict(zip(steps, (request.headers for request in requests), strict=True))


def test_what_is_sent_is_an_event_like_any_other(sink: Sink):
    endpoint = EndpointFactory(url=sink.url, checkup_allowed=True)
    endpoint.set_headers({"X-Tenant": "blue"})
    endpoint.save()
    check_up(endpoint, actor="alice")

    sent = by_step(sink.requests)
    for headers in sent.values():
        assert headers["X-ACW-Topic"] == "webhook.test"
        assert headers["X-Tenant"] == "blue"
        assert headers["webhook-id"] == headers["X-ACW-Event-Id"]
    ids = {step: headers["X-ACW-Event-Id"] for step, headers in sent.items()}
    assert ids["duplicate"] == ids["event"]
    assert len(set(ids.values())) == 4
    assert all(b'"checkup":true' in request.body for request in sink.requests)


def test_each_request_leaves_a_row_without_a_job_and_the_audit_says_what_was_found(
    sink: Sink,
):
    sink.behave = receivers.strict
    checked(sink)

    rows = WebhookAttempt.objects.order_by("pk")
    assert [(row.number, row.status, row.verdict, row.cause) for row in rows] == [
        (1, 204, "completed", "check-up, event: accepted"),
        (2, 401, "permanent", "check-up, forged signature: HTTP 401 Unauthorized"),
        (3, 401, "permanent", "check-up, old timestamp: HTTP 401 Unauthorized"),
        (4, 401, "permanent", "check-up, altered body: HTTP 401 Unauthorized"),
        (5, 204, "completed", "check-up, duplicate: accepted"),
    ]
    assert not rows.filter(
        Q(job_id__isnull=False)
        | Q(slot__isnull=False)
        | Q(finished_at=None)
        | Q(peer=None)
        | Q(answer_ms=None)
    )
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action) == ("alice", "webhook.checked_up")
    assert entry.target == "webhook:chat"
    assert entry.data["ok"] is True
    assert entry.data["findings"]["forged signature"] == "ok"


def test_the_row_is_there_while_the_request_is_under_way(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
):
    post, seen = outbound.post, []

    def look(*args: Any, **options: Any) -> Exchange:
        seen.append(WebhookAttempt.objects.get().finished_at)
        return post(*args, **options)

    monkeypatch.setattr(outbound, "post", look)
    sink.behave = sinks.answer(500)
    checked(sink)

    assert seen == [None]
    assert WebhookAttempt.objects.get().finished_at is not None


def test_without_its_owners_agreement_nothing_is_sent(sink: Sink):
    with pytest.raises(CheckupRefused, match="its owner has to agree"):
        checked(sink, checkup_allowed=False)
    assert sink.connections == []
    assert not WebhookAttempt.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_secret_that_cannot_be_read_is_told_before_anything_is_sent(sink: Sink):
    endpoint = EndpointFactory(url=sink.url, checkup_allowed=True)
    WebhookEndpoint.objects.update(encrypted_secret="not encrypted by this key")
    endpoint.refresh_from_db()

    with pytest.raises(EncryptionError):
        check_up(endpoint, actor="alice")
    assert sink.connections == []
    assert not WebhookAttempt.objects.exists()


def test_no_report_shows_the_url(sink: Sink):
    sink.behave = sinks.answer(301, {"Location": sink.url})
    report = checked(sink)

    assert "SECRET-TOKEN" not in str(report.as_json())
    assert "SECRET-TOKEN" not in str(AuditEntry.objects.get().data)
    assert "SECRET-TOKEN" not in WebhookAttempt.objects.get().cause
