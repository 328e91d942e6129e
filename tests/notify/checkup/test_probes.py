"""What each request is, as an independent library sees it."""

from __future__ import annotations

import json
import time
import uuid

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from notify import signing
from notify.checkup.probes import OLD_SECONDS, Probe, Probes
from tests.notify.factories import SECRET

ID = uuid.UUID("7b0c3f0e-5b1e-4a57-9a53-0d6a4c9e2f11")
PROBES = Probes("chat", [SECRET])


def verified(probe: Probe) -> None:
    Webhook(signing.standard_form(SECRET)).verify(probe.body, dict(probe.headers))


@pytest.fixture
def now() -> int:
    """The verifier goes by the clock: a time of long ago would be an old one."""
    return int(time.time())


def test_a_genuine_one_is_genuine_in_both_signatures(now: int):
    probe = PROBES.genuine(ID, now)

    verified(probe)
    assert probe.headers["X-ACW-Signature"] == signing.signature(
        SECRET, timestamp=now, body=probe.body
    )
    assert probe.headers["X-ACW-Event-Id"] == str(ID)
    assert json.loads(probe.body)["data"] == {"endpoint": "chat", "checkup": True}


@pytest.mark.parametrize("kind", ["forged", "old", "altered"])
def test_a_wrong_one_is_refused_and_wrong_in_nothing_else(kind: str, now: int):
    genuine = PROBES.genuine(ID, now)
    wrong: Probe = getattr(PROBES, kind)(ID, now)

    with pytest.raises(WebhookVerificationError):
        verified(wrong)
    assert wrong.headers.keys() == genuine.headers.keys()
    assert json.loads(wrong.body).keys() == json.loads(genuine.body).keys()


def test_a_forged_one_differs_in_its_signatures_alone(now: int):
    genuine, forged = PROBES.genuine(ID, now), PROBES.forged(ID, now)

    assert forged.body == genuine.body
    differing = {n for n, v in forged.headers.items() if v != genuine.headers[n]}
    assert differing == {"X-ACW-Signature", "webhook-signature"}
    assert len(forged.headers["X-ACW-Signature"]) == len(
        genuine.headers["X-ACW-Signature"]
    )


def test_an_old_one_was_signed_correctly_at_its_time(now: int):
    old = PROBES.old(ID, now)

    assert old == PROBES.genuine(ID, now - OLD_SECONDS)
    assert old.headers["X-ACW-Timestamp"] == str(now - OLD_SECONDS)


def test_an_altered_one_has_the_headers_of_another_body(now: int):
    genuine, altered = PROBES.genuine(ID, now), PROBES.altered(ID, now)

    assert altered.headers == genuine.headers
    assert altered.body != genuine.body


def test_while_a_secret_is_being_changed_both_sign(now: int):
    other = signing.new_secret()
    probe = Probes("chat", [other, SECRET]).genuine(ID, now)

    verified(probe)
    assert len(probe.headers["webhook-signature"].split()) == 2
