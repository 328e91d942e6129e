from __future__ import annotations

import uuid

import pytest

from notify import signing
from notify.exceptions import InvalidSecret
from tests.notify.factories import SECRET

# Computed once with another program; the body holds e-acute, an emoji and an escape.
VECTOR_BODY = (
    '{"id":"7b0c3f0e-5b1e-4a57-9a53-0d6a4c9e2f11","topic":"workspace.sync_failed",'
    '"data":{"name":"é😀\\u2028"}}'
).encode()
VECTOR = "sha256=cf432d18443581cb802ed62a1a81d2bfb6389b7ab3e64c0ec80cb2411732148f"


def test_the_signature_is_that_of_the_published_vector():
    assert len(VECTOR_BODY) == 108
    assert signing.signature(SECRET, timestamp=1700000000, body=VECTOR_BODY) == VECTOR


def test_the_headers_are_those_of_the_contract():
    event_id = uuid.UUID("7b0c3f0e-5b1e-4a57-9a53-0d6a4c9e2f11")

    headers = signing.headers(
        secret=SECRET,
        event_id=event_id,
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
    }


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
