from __future__ import annotations

import hashlib
import itertools
import time
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
import standardwebhooks
import svix.webhooks
from django.utils import timezone

from jobs.enqueue import enqueue
from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from notify import signing
from notify.exceptions import InvalidSecret
from notify.webhooks import DeliverPayload
from tests.notify import sinks
from tests.notify.factories import SECRET, TOPIC, EndpointFactory
from tests.notify.sinks import Sink

OTHER_SECRET = "the-next-secret-0123456789abcdef"
EVENT_ID = uuid.UUID("7b0c3f0e-5b1e-4a57-9a53-0d6a4c9e2f11")

# Computed once with another program; the body holds e-acute, an emoji and an escape.
VECTOR_BODY = (
    '{"id":"7b0c3f0e-5b1e-4a57-9a53-0d6a4c9e2f11","topic":"workspace.sync_failed",'
    '"data":{"name":"é😀\\u2028"}}'
).encode()
VECTOR = "sha256=cf432d18443581cb802ed62a1a81d2bfb6389b7ab3e64c0ec80cb2411732148f"
STANDARD_VECTOR = "v1,8RJgamsxHzU61AXtCrKXkaKkxCUV0SzKBBEpLBGsdCY="
STANDARD_SECRET = "whsec_YWN3LXRlc3Qtc2VjcmV0LTAxMjM0NTY3ODlhYmNkZWY="

VERIFIERS: dict[str, Any] = {
    "standardwebhooks": standardwebhooks.Webhook,
    "svix": svix.webhooks.Webhook,
}


def headers_of(
    *secrets: str, age: float = 0, body: bytes = VECTOR_BODY
) -> dict[str, str]:
    return signing.headers(
        secrets or [SECRET],
        event_id=EVENT_ID,
        timestamp=int(time.time() - age),
        topic="workspace.sync_failed",
        body=body,
    )


def accepts(library: str, secret: str, headers: dict[str, str], body: bytes) -> bool:
    """Whether the published library takes the request, with the secret as it is given to people."""
    verifier = VERIFIERS[library](signing.standard_form(secret))
    try:
        verifier.verify(body, headers)
    except (
        standardwebhooks.webhooks.WebhookVerificationError,
        svix.webhooks.WebhookVerificationError,
    ):
        return False
    return True


def test_the_signatures_are_those_of_the_published_vector():
    assert len(VECTOR_BODY) == 108
    assert signing.signature(SECRET, timestamp=1700000000, body=VECTOR_BODY) == VECTOR
    assert (
        signing.standard_signature(
            SECRET, event_id=EVENT_ID, timestamp=1700000000, body=VECTOR_BODY
        )
        == STANDARD_VECTOR
    )
    assert signing.standard_form(SECRET) == STANDARD_SECRET


def test_the_headers_are_those_of_the_contract_and_of_standard_webhooks():
    headers = signing.headers(
        [SECRET],
        event_id=EVENT_ID,
        timestamp=1700000000,
        topic="workspace.sync_failed",
        body=VECTOR_BODY,
    )

    assert headers == {
        "Content-Type": "application/json",
        "X-ACW-Topic": "workspace.sync_failed",
        "X-ACW-Event-Id": "7b0c3f0e-5b1e-4a57-9a53-0d6a4c9e2f11",
        "X-ACW-Timestamp": "1700000000",
        "X-ACW-Signature": VECTOR,
        "webhook-id": "7b0c3f0e-5b1e-4a57-9a53-0d6a4c9e2f11",
        "webhook-timestamp": "1700000000",
        "webhook-signature": STANDARD_VECTOR,
    }


def test_of_two_secrets_the_first_makes_the_one_signature_and_both_make_the_list():
    headers = headers_of(OTHER_SECRET, SECRET)
    alone, other = headers_of(OTHER_SECRET), headers_of(SECRET)

    assert headers["X-ACW-Signature"] == alone["X-ACW-Signature"]
    assert headers["X-ACW-Signature-Other"] == other["X-ACW-Signature"]
    assert headers["webhook-signature"].split(" ") == [
        alone["webhook-signature"],
        other["webhook-signature"],
    ]
    assert "X-ACW-Signature-Other" not in alone


@pytest.mark.parametrize("library", VERIFIERS)
def test_a_published_library_takes_what_is_genuine_and_nothing_else(library: str):
    headers = headers_of()

    assert accepts(library, SECRET, headers, VECTOR_BODY)
    assert accepts(library, SECRET, headers_of(age=299), VECTOR_BODY)
    assert not accepts(library, SECRET, headers_of(age=301), VECTOR_BODY)
    assert not accepts(library, SECRET, headers_of(age=-302), VECTOR_BODY)
    assert not accepts(library, SECRET, headers, VECTOR_BODY.replace(b"a", b"b", 1))
    assert not accepts(library, OTHER_SECRET, headers, VECTOR_BODY)
    another_id = {**headers, "webhook-id": str(uuid.uuid4())}
    assert not accepts(library, SECRET, another_id, VECTOR_BODY)


@pytest.mark.parametrize("library", VERIFIERS)
def test_while_both_sign_a_published_library_takes_it_with_either_secret(library: str):
    for secrets in [(SECRET, OTHER_SECRET), (OTHER_SECRET, SECRET)]:
        headers = headers_of(*secrets)
        assert accepts(library, SECRET, headers, VECTOR_BODY)
        assert accepts(library, OTHER_SECRET, headers, VECTOR_BODY)
        assert not accepts(library, SECRET[::-1], headers, VECTOR_BODY)


@pytest.mark.django_db
@pytest.mark.usefixtures("webhooks_on")
def test_every_attempt_sends_the_stored_bytes_under_a_time_and_signature_of_its_own(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
):
    body = '{"title":"é😀\u2028","data":{"nul":"\\u0000","quoted":"\\\\ \\"\u2029"}}'
    hours = itertools.count()
    an_hour_later = SimpleNamespace(time=lambda: time.time() + 3600 * next(hours))
    monkeypatch.setattr("notify.sending.time", an_hour_later)
    endpoint = EndpointFactory(url=sink.url)
    job = enqueue(
        "webhook.deliver",
        DeliverPayload(endpoint_id=endpoint.pk, topic=TOPIC, body=body),
        ref_id=str(endpoint.pk),
    )
    sink.behave = sinks.in_turn(
        sinks.answer(500), sinks.reset, sinks.answer(429), sinks.answer(204)
    )
    for _ in range(4):
        Job.objects.update(run_at=timezone.now())
        run_due_jobs()

    assert Job.objects.get().status == Status.COMPLETED
    sent = {hashlib.sha256(request.body).digest() for request in sink.requests}
    assert sent == {hashlib.sha256(body.encode()).digest()}
    headers = [request.headers for request in sink.requests]
    assert {h["X-ACW-Event-Id"] for h in headers} == {str(job.id)}
    assert {h["webhook-id"] for h in headers} == {str(job.id)}
    assert len({h["X-ACW-Timestamp"] for h in headers}) == 4
    assert all(h["X-ACW-Timestamp"] == h["webhook-timestamp"] for h in headers)
    for request in sink.requests:
        timestamp = int(request.headers["X-ACW-Timestamp"])
        assert request.headers["X-ACW-Signature"] == signing.signature(
            SECRET, timestamp=timestamp, body=body.encode()
        )


@pytest.mark.parametrize("around", ["{}", "{}\n", "  {}\r\n", "\t{} "])
def test_what_files_and_copying_add_to_a_secret_is_taken_off(around: str):
    assert signing.checked_secret(around.format(SECRET)) == SECRET


@pytest.mark.parametrize(
    ("secret", "rule"),
    [
        ("", "24 to 64 characters long, got 0"),
        ("a" * 23, "24 to 64 characters long, got 23"),
        ("a" * 65, "24 to 64 characters long, got 65"),
        ("a" * 20 + " " + "a" * 20, "printable ASCII without spaces"),
        ("a" * 20 + "\n" + "a" * 20, "printable ASCII without spaces"),
        ("a" * 20 + "\x00" + "a" * 20, "printable ASCII without spaces"),
        ("é" * 30, "printable ASCII without spaces"),
    ],
)
def test_a_secret_that_breaks_a_rule_is_refused_and_not_quoted(secret: str, rule: str):
    with pytest.raises(InvalidSecret, match=rule) as refused:
        signing.checked_secret(secret)

    assert not secret or secret not in str(refused.value)


def test_a_new_secret_keeps_to_the_rules_and_is_another_each_time():
    secrets = {signing.new_secret() for _ in range(20)}

    assert len(secrets) == 20
    assert all(signing.checked_secret(secret) == secret for secret in secrets)
