"""The delivery job, run by the queue's own parts, against real receivers."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from jobs.models import Attempt, Job, Status
from jobs.registry import job_type
from jobs.testing import run_due_jobs
from notify.dispatch import Event, dispatch
from notify.models import WebhookAttempt, WebhookEndpoint
from notify.resending import resend
from tests.notify import sinks
from tests.notify.factories import SECRET, TOPIC, EndpointFactory, delivery_to
from tests.notify.flow import run_again_now, statuses
from tests.notify.sinks import Sink

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("webhooks_on")]


def tell(title: str = "It happened é😀") -> None:
    dispatch(Event(topic=TOPIC, recipients=[], title=title))


def test_the_type_is_registered_as_the_contract_says():
    deliver = job_type("webhook.deliver")

    assert deliver.max_attempts == 6
    assert deliver.queue == "webhooks"


def test_an_event_arrives_signed_with_the_jobs_id(sink: Sink):
    EndpointFactory(url=sink.url)
    tell()

    [job] = run_due_jobs()

    [request] = sink.requests
    assert job.status == Status.COMPLETED
    assert request.headers["X-ACW-Event-Id"] == str(job.id)
    assert request.body.decode() == job.payload["body"]


def test_a_receiver_that_fails_gets_the_same_bytes_and_id_again(sink: Sink):
    sink.behave = sinks.in_turn(sinks.answer(500), sinks.reset, sinks.answer(204))
    EndpointFactory(url=sink.url)
    tell()

    [job] = run_due_jobs()
    assert job.status == Status.PENDING
    assert "HTTP 500" in job.last_error
    run_again_now()
    [job] = run_again_now()

    assert job.status == Status.COMPLETED
    assert len({request.body for request in sink.requests}) == 1
    assert {r.headers["X-ACW-Event-Id"] for r in sink.requests} == {str(job.id)}
    attempts = WebhookAttempt.objects.order_by("id").values_list("number", "verdict")
    assert list(attempts) == [(1, "retry"), (2, "retry"), (3, "completed")]


def test_a_receiver_that_refuses_ends_it_at_once(sink: Sink):
    sink.behave = sinks.answer(404)
    EndpointFactory(url=sink.url)
    tell()

    [job] = run_due_jobs()

    assert (job.status, job.attempts) == (Status.DEAD, 1)
    assert "HTTP 404 Not Found" in job.last_error


def test_a_receiver_that_stays_down_is_tried_as_often_as_the_setting_says(
    sink: Sink, settings: Settings
):
    settings.NOTIFY_WEBHOOK_MAX_ATTEMPTS = 3
    sink.behave = sinks.answer(503)
    EndpointFactory(url=sink.url)
    tell()
    run_due_jobs()
    run_again_now()

    [job] = run_again_now()

    assert (job.status, job.attempts) == (Status.DEAD, 3)
    assert len(sink.requests) == 3


def test_a_receiver_that_asks_for_time_gets_it(sink: Sink, settings: Settings):
    settings.JOBS_BACKOFF_BASE = dt.timedelta(seconds=1)
    sink.behave = sinks.answer(429, {"Retry-After": "600"})
    EndpointFactory(url=sink.url)
    tell()

    [job] = run_due_jobs()

    assert job.status == Status.PENDING
    assert job.run_at - timezone.now() > dt.timedelta(seconds=590)


def test_address_and_secret_are_those_of_the_moment_of_sending(sink: Sink):
    endpoint = EndpointFactory(url="http://old.invalid/")
    tell()
    endpoint.url = sink.url
    endpoint.save()

    [job] = run_due_jobs()

    assert job.status == Status.COMPLETED
    assert len(sink.requests) == 1


def switch_off(what: str, settings: Settings) -> None:
    if what == "endpoint":
        WebhookEndpoint.objects.update(enabled=False)
    else:
        settings.NOTIFY_WEBHOOK_ENABLED = False


@pytest.mark.parametrize("what", ["endpoint", "webhooks"])
def test_while_it_is_switched_off_a_delivery_waits_and_then_arrives(
    sink: Sink, settings: Settings, what: str
):
    EndpointFactory(url=sink.url)
    tell()
    switch_off(what, settings)

    [job] = run_due_jobs()

    assert (job.status, job.attempts) == (Status.PENDING, 0)
    assert job.run_at > timezone.now()
    assert sink.connections == []
    assert WebhookAttempt.objects.count() == 0

    WebhookEndpoint.objects.update(enabled=True)
    settings.NOTIFY_WEBHOOK_ENABLED = True
    [job] = run_again_now()

    assert (job.status, job.attempts) == (Status.COMPLETED, 1)
    assert len(sink.requests) == 1


@pytest.mark.parametrize("what", ["endpoint", "webhooks"])
def test_what_waited_until_it_is_news_no_more_is_not_sent(
    sink: Sink, settings: Settings, what: str
):
    EndpointFactory(url=sink.url)
    tell()
    Job.objects.update(created_at=timezone.now() - dt.timedelta(days=8))
    switch_off(what, settings)

    [job] = run_due_jobs()

    assert job.status == Status.COMPLETED
    assert sink.connections == []
    row = WebhookAttempt.objects.get()
    assert row.verdict == "skipped"
    assert row.cause


@pytest.mark.parametrize(
    "kept_back",
    [
        pytest.param({"enabled": False, "disabled_reason": "HTTP 410"}, id="disabled"),
        pytest.param({"breaker": "open"}, id="open"),
        pytest.param({"breaker": "parked"}, id="parked"),
    ],
)
def test_what_acw_kept_back_until_it_is_news_no_more_is_a_dead_letter(
    sink: Sink, kept_back: dict[str, Any]
):
    EndpointFactory(url=sink.url)
    tell()
    Job.objects.update(created_at=timezone.now() - dt.timedelta(days=8))
    until = timezone.now() + dt.timedelta(minutes=1)
    WebhookEndpoint.objects.update(**kept_back, breaker_until=until)

    [job] = run_due_jobs()

    assert (job.status, job.attempts) == (Status.DEAD, 1)
    assert "not sent for 8 days" in job.last_error
    assert sink.connections == []
    assert WebhookAttempt.objects.count() == 0


def test_what_is_resent_after_days_is_news_again_and_waits_for_its_endpoint(sink: Sink):
    endpoint = EndpointFactory(url=sink.url, breaker="open")
    long_ago = timezone.now() - dt.timedelta(days=8)
    job = delivery_to(endpoint, status=Status.DEAD, completed_at=long_ago)
    Job.objects.update(created_at=long_ago)
    WebhookEndpoint.objects.update(
        breaker_until=timezone.now() + dt.timedelta(minutes=1)
    )
    resend([job.pk], actor="ada")

    run_due_jobs()

    assert statuses() == [(Status.PENDING, 0)]


def test_for_an_endpoint_that_is_gone_nothing_is_sent(sink: Sink):
    endpoint = EndpointFactory(url=sink.url)
    tell()
    endpoint.delete()

    [job] = run_due_jobs()

    assert job.status == Status.COMPLETED
    assert sink.connections == []
    assert WebhookAttempt.objects.get().verdict == "skipped"


def test_neither_url_nor_secret_is_in_what_the_queue_keeps(sink: Sink):
    sink.behave = sinks.in_turn(sinks.reset, sinks.answer(404))
    EndpointFactory(url=sink.url)
    tell()
    run_due_jobs()
    run_again_now()

    kept = repr([*Job.objects.values(), *Attempt.objects.values()])
    assert "traceback" in kept
    assert "SECRET-TOKEN" not in kept
    assert SECRET not in kept
