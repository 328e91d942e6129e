from __future__ import annotations

import datetime as dt
import threading
import time
import uuid

import pytest
from django.db import connection
from django.utils import timezone

from jobs.identifiers import uuid7
from jobs.models import Job
from notify import attempts, sending
from notify.health import places, settling
from notify.models import WebhookAttempt, WebhookEndpoint
from tests.notify import sinks
from tests.notify.factories import TOPIC, AttemptFactory, EndpointFactory
from tests.notify.sinks import Connection, Received, Sink


def open_one(endpoint: WebhookEndpoint) -> WebhookAttempt | None:
    _, attempt = attempts.open_attempt(
        endpoint.pk, job_id=uuid7(), number=1, topic=TOPIC
    )
    return attempt


class Counting:
    """A receiver that notes how many requests it had at one time, and keeps each until others had the time to come."""

    def __init__(self, until: int) -> None:
        self.most = 0
        self._now = 0
        self._until = until
        self._condition = threading.Condition()

    def __call__(self, answering: Connection, _: Received) -> None:
        with self._condition:
            self._now += 1
            self.most = max(self.most, self._now)
            self._condition.notify_all()
            self._condition.wait_for(lambda: self.most >= self._until, timeout=5)
        answering.pause(0.01)
        with self._condition:
            self._now -= 1
        answering.send(sinks.head(204))


@pytest.mark.django_db(transaction=True)
def test_no_more_requests_than_the_limit_are_under_way_at_one_time():
    counting = Counting(until=2)
    deadline = time.monotonic() + 20
    sent: list[uuid.UUID] = []

    def deliver() -> None:
        try:
            while len(sent) < 40 and time.monotonic() < deadline:
                attempt = open_one(endpoint)
                if attempt is not None:
                    sending.send(attempt, event_id=uuid7(), body="{}")
                    sent.append(uuid7())
        finally:
            connection.close()

    with Sink(counting) as sink:
        endpoint = EndpointFactory(url=sink.url, max_in_flight=2)
        threads = [threading.Thread(target=deliver) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(sent) >= 40
    assert counting.most == 2
    assert not WebhookAttempt.objects.filter(slot__isnull=False).exists()


@pytest.mark.django_db
def test_a_place_is_free_again_when_its_attempt_has_ended():
    endpoint = EndpointFactory(max_in_flight=2)
    first, second = open_one(endpoint), open_one(endpoint)
    assert open_one(endpoint) is None
    assert first is not None
    assert second is not None

    attempts.close_attempt(first)

    third = open_one(endpoint)
    assert third is not None
    slots = WebhookAttempt.objects.filter(pk__in=[second.pk, third.pk])
    assert set(slots.values_list("slot", flat=True)) == {1, 2}


@pytest.mark.django_db
def test_the_place_of_a_worker_that_was_killed_is_free_after_a_while():
    endpoint = EndpointFactory(max_in_flight=1, timeout=dt.timedelta(seconds=5))
    killed = open_one(endpoint)
    assert killed is not None
    assert open_one(endpoint) is None
    age(killed, seconds=19)
    assert open_one(endpoint) is None
    age(killed, seconds=21)

    assert open_one(endpoint) is not None

    row = WebhookAttempt.objects.get(pk=killed.pk)
    assert (row.verdict, row.finished_at, row.slot) == ("unknown", None, None)


def age(attempt: WebhookAttempt, *, seconds: float) -> None:
    began = timezone.now() - dt.timedelta(seconds=seconds)
    WebhookAttempt.objects.filter(pk=attempt.pk).update(started_at=began)


@pytest.mark.django_db
def test_a_limit_that_was_lowered_holds_for_the_next_one():
    endpoint = EndpointFactory(max_in_flight=3)
    first, second, _ = [open_one(endpoint) for _ in range(3)]
    assert first is not None
    assert second is not None
    WebhookEndpoint.objects.update(max_in_flight=2)

    attempts.close_attempt(first)
    assert open_one(endpoint) is None

    attempts.close_attempt(second)
    assert open_one(endpoint) is not None
    assert open_one(endpoint) is None


@pytest.mark.django_db
def test_one_at_a_time_tries_an_endpoint_that_fails_and_none_before_its_time():
    endpoint = EndpointFactory(
        breaker="open", breaker_until=timezone.now() + dt.timedelta(minutes=1)
    )
    assert open_one(endpoint) is None
    WebhookEndpoint.objects.update(breaker_until=timezone.now())

    trial = open_one(endpoint)

    assert trial is not None
    assert trial.trial
    assert open_one(endpoint) is None


@pytest.mark.django_db
def test_a_window_lets_out_as_many_as_it_has_and_no_more_than_the_limit_at_once():
    endpoint = EndpointFactory(breaker="recovering", window=3, max_in_flight=2)
    first, second = open_one(endpoint), open_one(endpoint)
    assert first is not None
    assert second is not None
    assert not first.trial
    assert open_one(endpoint) is None
    for attempt in (first, second):
        attempt.verdict = WebhookAttempt.Verdict.COMPLETED
        attempts.close_attempt(attempt)

    assert open_one(endpoint) is not None
    assert open_one(endpoint) is None


@pytest.mark.django_db
def test_what_was_let_out_to_try_counts_within_the_limit_when_all_is_well_again():
    endpoint = EndpointFactory(max_in_flight=2)
    AttemptFactory(endpoint=endpoint, slot=0)

    assert open_one(endpoint) is not None
    assert open_one(endpoint) is None


@pytest.mark.django_db
def test_a_test_event_needs_no_place():
    endpoint = EndpointFactory(max_in_flight=1, breaker="parked")
    AttemptFactory(endpoint=endpoint, slot=1)

    _, attempt = attempts.open_attempt(
        endpoint.pk, job_id=None, number=1, topic=TOPIC, disabled_too=True
    )

    assert attempt is not None
    assert WebhookAttempt.objects.get(pk=attempt.pk).slot is None


@pytest.mark.django_db(transaction=True)
def test_deleting_an_endpoint_during_a_delivery_fails_for_neither(sink: Sink):
    def delete(answering: Connection, _: Received) -> None:
        WebhookEndpoint.objects.get().delete()
        connection.close()
        answering.send(sinks.head(500))

    sink.behave = delete
    endpoint = EndpointFactory(url=sink.url)
    attempt = open_one(endpoint)
    assert attempt is not None

    judgement = sending.send(attempt, event_id=uuid7(), body="{}")
    settlement = settling.settle(attempt, judgement)

    assert settlement.fate == "retry"
    row = WebhookAttempt.objects.select_related("endpoint").get()
    assert (row.verdict, row.slot, row.endpoint) == ("retry", None, None)
    assert not WebhookEndpoint.objects.exists()
    assert not Job.objects.exists()


@pytest.mark.django_db
def test_places_of_other_endpoints_do_not_count():
    AttemptFactory(slot=1)

    assert open_one(EndpointFactory(max_in_flight=1)) is not None
    assert places.ROUNDS > 1
