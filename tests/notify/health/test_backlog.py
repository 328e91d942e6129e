from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from notify.health import backlog
from notify.models import WebhookAttempt, WebhookEndpoint
from notify.resending import resend
from tests.notify import sinks
from tests.notify.factories import AttemptFactory, EndpointFactory, delivery_to
from tests.notify.flow import run_again_now, tell
from tests.notify.sinks import Sink

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("webhooks_on")]

HOUR = dt.timedelta(hours=1)


def waiting(count: int) -> WebhookEndpoint:
    endpoint = EndpointFactory()
    tell(count)
    return endpoint


def test_a_delivery_waits_in_the_queue_or_in_the_hands_of_a_worker_without_an_answer():
    endpoint = waiting(1)
    job = Job.objects.get()
    assert backlog.waits(endpoint.pk)
    assert not backlog.waits(endpoint.pk, besides=job.pk)
    assert not backlog.waits(EndpointFactory().pk)

    Job.objects.update(status=Status.RUNNING, lease_until=timezone.now())
    assert backlog.waits(endpoint.pk)

    AttemptFactory(endpoint=endpoint, job_id=job.pk, verdict="completed")
    assert not backlog.waits(endpoint.pk)


def test_one_that_has_its_next_try_before_it_waits_for_nobody(sink: Sink):
    endpoint = EndpointFactory(url=sink.url)
    sink.behave = sinks.answer(503)
    tell()
    run_due_jobs()
    assert not backlog.waits(endpoint.pk)

    # Turned away when it came back, it waits for the endpoint again.
    WebhookEndpoint.objects.update(breaker="open", breaker_until=timezone.now() + HOUR)
    run_again_now()
    assert backlog.waits(endpoint.pk)


def test_a_delivery_is_as_old_as_the_last_wish_for_it():
    job = delivery_to(EndpointFactory(), status="dead", completed_at=timezone.now())
    long_ago = timezone.now() - 200 * HOUR
    assert backlog.age(job.pk, long_ago) > 199 * HOUR

    resend([job.pk], actor="ada")

    assert backlog.age(job.pk, long_ago) < HOUR


def test_deliveries_come_about_as_often_as_a_place_is_free():
    endpoint = EndpointFactory(max_in_flight=2)
    assert backlog.spacing(endpoint) > dt.timedelta(0)
    for seconds in [60, *[1] * 5, *[3] * 5]:
        AttemptFactory(endpoint=endpoint, duration=dt.timedelta(seconds=seconds))
    AttemptFactory(endpoint=endpoint)

    assert backlog.spacing(endpoint) == dt.timedelta(seconds=2) * backlog.SHARE / 2


def test_the_oldest_are_let_out_and_what_else_is_due_waits_behind_them():
    endpoint = waiting(5)
    first, *_, last = Job.objects.order_by("id")
    Job.objects.filter(pk__in=[first.pk, last.pk]).update(run_at=timezone.now() + HOUR)

    backlog.release(endpoint, 2)

    due = Job.objects.due().order_by("id")
    assert list(due) == list(Job.objects.order_by("id")[:2])
    later = Job.objects.order_by("id")[2:4]
    assert all(job.run_at > timezone.now() + dt.timedelta(seconds=20) for job in later)


def test_all_that_waits_is_let_out_at_the_endpoints_pace():
    endpoint = waiting(3)
    AttemptFactory(endpoint=endpoint, duration=dt.timedelta(minutes=20))
    Job.objects.update(run_at=timezone.now() + HOUR)

    assert backlog.release_all(endpoint) == 3

    now = timezone.now()
    times = Job.objects.order_by("id").values_list("run_at", flat=True)
    assert [round((at - now).total_seconds() / 60) for at in times] == [0, 4, 8]


def test_the_newest_attempt_is_that_of_the_endpoint():
    endpoint = EndpointFactory()
    assert backlog.newest_attempt(endpoint.pk) == 0
    attempt = AttemptFactory(endpoint=endpoint)
    AttemptFactory()

    assert backlog.newest_attempt(endpoint.pk) == attempt.pk
    assert WebhookAttempt.objects.count() == 2
