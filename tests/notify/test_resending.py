from __future__ import annotations

import uuid

import pytest
from django.utils import timezone
from pytest_django import Settings

from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from notify.dispatch import Event, dispatch
from notify.models import (
    AuditEntry,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
)
from notify.resending import resend
from tests.jobs.factories import JobFactory
from tests.notify import sinks
from tests.notify.factories import TOPIC, AttemptFactory, EndpointFactory, delivery_to
from tests.notify.sinks import Sink

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("first", [404, 204])
def test_what_died_or_was_delivered_is_sent_again_with_the_same_id_and_bytes(
    webhooks_on: Settings, sink: Sink, first: int
):
    sink.behave = sinks.in_turn(sinks.answer(first), sinks.answer(204))
    EndpointFactory(url=sink.url)
    dispatch(Event(topic=TOPIC, recipients=[], title="It happened"))
    [ended] = run_due_jobs()

    result = resend([ended.pk], actor="alice")
    [job] = run_due_jobs()

    assert (str(result), job.pk, job.status) == ("1 resent", ended.pk, "completed")
    one, two = sink.requests
    assert one.body == two.body
    assert one.headers["X-ACW-Event-Id"] == two.headers["X-ACW-Event-Id"] == str(job.pk)
    assert WebhookAttempt.objects.filter(job_id=job.pk).count() == 2
    entry = AuditEntry.objects.get(action="job.repeat")
    assert (entry.actor, entry.target) == ("alice", f"job:{job.pk}")
    assert entry.data["status"] == ended.status


@pytest.mark.parametrize("state", ["later", "running", "cancelled"])
def test_what_waits_is_under_way_or_was_cancelled_is_refused(state: str):
    delivery = delivery_to(EndpointFactory(), **{state: True})
    before = Job.objects.filter(pk=delivery.pk).values().get()

    result = resend([delivery.pk], actor="alice")

    assert result.done == []
    assert "only dead and completed jobs can be resent" in str(result)
    assert Job.objects.filter(pk=delivery.pk).values().get() == before


def test_what_a_later_event_replaced_is_refused():
    delivery = delivery_to(EndpointFactory(), cancelled=True)
    AttemptFactory(
        job_id=delivery.pk,
        verdict=WebhookAttempt.Verdict.SUPERSEDED,
        superseded_by=uuid.uuid4(),
        finished_at=timezone.now(),
    )

    result = resend([delivery.pk], actor="alice")

    assert str(result) == "0 resent, 1 skipped: a later event went in its place"


def test_another_job_is_refused():
    job = JobFactory(dead=True)

    result = resend([job.pk], actor="alice")

    assert str(result) == "0 resent, 1 skipped: it delivers no webhook"


def test_what_was_for_an_endpoint_that_is_deleted_is_refused():
    delivery = delivery_to(EndpointFactory(), dead=True)
    WebhookEndpoint.objects.all().delete()

    result = resend([delivery.pk], actor="alice")

    assert str(result) == "0 resent, 1 skipped: its endpoint was deleted"


def test_a_set_is_resent_as_far_as_it_can_be():
    endpoint = EndpointFactory()
    dead = [delivery_to(endpoint, dead=True) for _ in range(3)]
    delivery_to(endpoint, later=True)

    result = resend(WebhookDelivery.objects.of(endpoint), actor="alice")

    assert result.done == [delivery.pk for delivery in dead]
    assert len(result.skipped) == 1
    assert Job.objects.filter(status=Status.DEAD).count() == 0
