from __future__ import annotations

import datetime as dt

import pytest
from cryptography.fernet import Fernet
from django.db.models.functions import Now
from pytest_django import Settings

from jobs.doctor import Level, probe_names
from jobs.probes import backlog
from notify import probes, rotation
from notify.models import WebhookEndpoint
from notify.querysets import DELIVERY_TYPE
from tests.jobs.factories import JobFactory
from tests.notify.factories import EndpointFactory

pytestmark = pytest.mark.django_db
NEW_SECRET = "the-next-secret-0123456789abcdef"


def test_doctor_asks():
    assert "secrets" in probe_names()


def test_dead_deliveries_are_sent_again_by_the_verb_that_keeps_their_pace():
    JobFactory(dead=True, type=DELIVERY_TYPE, last_error="HTTP 500")
    [finding] = backlog.dead()
    assert "manage.py webhook recover NAME --since 24h" in finding.advice
    assert "jobs retry" not in finding.advice


def test_secrets_that_can_be_read_are_well():
    rotation.stage(EndpointFactory(), actor="alice")

    [finding] = probes.secrets()

    assert finding.level is Level.OK
    assert finding.message == "those of 1 webhook endpoints can be read"


def test_without_its_key_an_endpoint_is_named(settings: Settings):
    EndpointFactory(name="chat")
    settings.ACW_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    EndpointFactory(name="other")

    [finding] = probes.secrets()

    assert (finding.level, finding.message) == (Level.ERROR, "cannot be read for: chat")
    assert "ACW_ENCRYPTION_KEYS" in finding.advice


def test_a_rotation_that_has_stopped_half_way_is_named():
    names = ("new", "staged", "retiring", "settled")
    new, staged, retiring, settled = (EndpointFactory(name=name) for name in names)
    for endpoint in (new, staged, retiring, settled):
        rotation.stage(endpoint, NEW_SECRET, actor="alice")
    for endpoint in (retiring, settled):
        rotation.make_current(endpoint, NEW_SECRET, actor="alice", proof="probe")
    rotation.retire(settled, actor="alice")
    long_ago = Now() - dt.timedelta(days=8)
    WebhookEndpoint.objects.exclude(name="new").update(promoted_at=long_ago)
    WebhookEndpoint.objects.filter(name="staged").update(staged_at=long_ago)

    findings = list(probes.secrets())

    assert [finding.level for finding in findings] == [Level.WARNING] * 2
    told = [finding.message.partition(" since ")[0] for finding in findings]
    assert told == [
        "retiring: The new secret signs first, and the old one too. 0 of 3 deliveries have followed",
        "staged: A new secret has been staged",
    ]
