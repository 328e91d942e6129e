from __future__ import annotations

import logging

import pytest
from django.db import transaction
from pytest_django import Settings

from jobs.models import Job
from notify.dispatch import Event, dispatch
from notify.exceptions import UnknownTopic
from notify.models import Notification
from tests.notify.factories import TOPIC, EndpointFactory, UserFactory

pytestmark = pytest.mark.django_db


def test_an_event_reaches_inboxes_and_endpoints(
    webhooks_on: Settings, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "notify")
    EndpointFactory()
    user = UserFactory()

    dispatch(Event(topic=TOPIC, recipients=[user], title="It happened"))

    assert Notification.objects.get().user == user
    assert Job.objects.get().type == "webhook.deliver"
    [record] = caplog.records
    assert record.getMessage() == "notify.dispatched"
    assert record.__dict__["notifications"] == 1
    assert record.__dict__["webhooks"] == 1


def test_both_vanish_with_the_transaction_that_they_report_on(webhooks_on: Settings):
    EndpointFactory()

    with transaction.atomic():
        dispatch(Event(topic=TOPIC, recipients=[UserFactory()], title="It happened"))
        transaction.set_rollback(True)

    assert not Notification.objects.exists()
    assert not Job.objects.exists()


def test_what_is_told_has_no_credentials(webhooks_on: Settings):
    EndpointFactory()
    title = "https://me:hunter2@git.example/ is gone"

    dispatch(Event(topic=TOPIC, recipients=[UserFactory()], title=title))

    assert "hunter2" not in Notification.objects.get().title
    assert "hunter2" not in Job.objects.get().payload["body"]


def test_an_unknown_topic_tells_nobody(webhooks_on: Settings):
    with pytest.raises(UnknownTopic):
        dispatch(Event(topic="test.hapened", recipients=[UserFactory()], title="x"))

    assert not Notification.objects.exists()
