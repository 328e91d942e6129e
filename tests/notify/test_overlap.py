"""No delivery is refused while a secret is being changed: through the real handler, to receivers with one secret at a time."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Sequence

import pytest
from django.utils import timezone
from pytest_django import Settings

from jobs.identifiers import uuid7
from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from notify import attempts, encryption, overlap, proving, rotation
from notify.delivery import Judgement, judge
from notify.dispatch import Event, dispatch
from notify.exceptions import RotationRefused
from notify.exchange import Exchange
from notify.models import AuditEntry, WebhookAttempt, WebhookEndpoint
from tests.notify import sinks
from tests.notify.factories import SECRET, TOPIC, EndpointFactory
from tests.notify.sinks import Sink
from tests.notify.verifying import (
    Check,
    Receiver,
    by_standard_webhooks,
    by_the_contract,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("webhooks_on")]
NEW_SECRET = "the-next-secret-0123456789abcdef"
WHO = "alice"
CHECKS = pytest.mark.parametrize("check", [by_the_contract, by_standard_webhooks])


def deliver() -> Job:
    """One event, through queue and handler."""
    dispatch(Event(topic=TOPIC, recipients=[], title="It happened é😀"))
    [job] = run_due_jobs()
    return job


def stage(endpoint: WebhookEndpoint) -> None:
    rotation.stage(endpoint, NEW_SECRET, actor=WHO)


def promote(endpoint: WebhookEndpoint, *, without_proof: bool = False) -> None:
    """As an operator does it: one receiver has not got the secret yet, another has promoted it by a delivery already."""
    with contextlib.suppress(RotationRefused):
        proving.promote(endpoint, actor=WHO, without_proof=without_proof)


def secrets_of(endpoint: WebhookEndpoint) -> list[str]:
    endpoint.refresh_from_db()
    return rotation.signing_secrets(endpoint)


def verdicts() -> list[tuple[int, str]]:
    rows = WebhookAttempt.objects.filter(job_id__isnull=False).order_by("id")
    return list(rows.values_list("number", "verdict"))


@CHECKS
def test_every_delivery_is_taken_at_once_whenever_the_receiver_takes_its_new_secret(
    check: Check, sink: Sink
):
    for changes_at in range(1, 9):
        endpoint = EndpointFactory(url=sink.url)
        receiver = Receiver(check, SECRET, to=NEW_SECRET, changes_at=changes_at)
        sink.behave = receiver
        jobs = [deliver()]
        stage(endpoint)
        jobs.append(deliver())
        promote(endpoint)
        jobs += [deliver(), deliver()]
        promote(endpoint)
        jobs += [deliver() for _ in range(3)]

        assert {job.status for job in jobs} == {Status.COMPLETED}
        assert {job.attempts for job in jobs} == {1}
        assert set(receiver.taken) >= {str(job.id) for job in jobs}
        secrets = secrets_of(endpoint)
        assert receiver.secret in secrets
        WebhookEndpoint.objects.all().delete()


@CHECKS
def test_a_secret_that_is_promoted_too_early_loses_nothing_either(
    check: Check, sink: Sink
):
    for changes_at in range(1, 9):
        endpoint = EndpointFactory(url=sink.url)
        receiver = Receiver(
            check,
            SECRET,
            to=NEW_SECRET,
            changes_at=changes_at,
            refusal=[400, 401, 403, 404][changes_at % 4],
        )
        sink.behave = receiver
        stage(endpoint)
        promote(endpoint, without_proof=True)

        jobs = [deliver() for _ in range(6)]

        assert {job.status for job in jobs} == {Status.COMPLETED}
        assert {job.attempts for job in jobs} == {1}
        assert set(receiver.taken) == {str(job.id) for job in jobs}
        assert receiver.secret in secrets_of(endpoint)
        WebhookEndpoint.objects.all().delete()


@CHECKS
def test_the_old_secret_is_not_retired_before_the_receiver_does_without_it(
    check: Check, sink: Sink
):
    endpoint = EndpointFactory(url=sink.url)
    receiver = Receiver(check, SECRET)
    sink.behave = receiver
    stage(endpoint)
    promote(endpoint, without_proof=True)

    jobs = [deliver() for _ in range(5)]
    assert {(job.status, job.attempts) for job in jobs} == {(Status.COMPLETED, 1)}
    assert secrets_of(endpoint) == [NEW_SECRET, SECRET]

    receiver.secret = NEW_SECRET
    jobs = [deliver() for _ in range(3)]
    assert {(job.status, job.attempts) for job in jobs} == {(Status.COMPLETED, 1)}
    assert secrets_of(endpoint) == [NEW_SECRET]
    assert len(sink.requests[-1].headers["webhook-signature"].split(" ")) == 1


def test_a_receiver_that_has_the_new_secret_early_has_it_promoted(sink: Sink):
    endpoint = EndpointFactory(url=sink.url)
    stage(endpoint)
    sink.behave = Receiver(by_the_contract, NEW_SECRET)

    job = deliver()

    assert (job.status, job.attempts) == (Status.COMPLETED, 1)
    assert verdicts() == [(1, "repeated"), (1, "completed")]
    repeated, taken = WebhookAttempt.objects.order_by("id")
    assert (repeated.status, repeated.cause) == (401, "HTTP 401 Unauthorized")
    assert repeated.finished_at is not None
    assert repeated.job_id == taken.job_id == job.id
    assert secrets_of(endpoint) == [NEW_SECRET, SECRET]
    assert AuditEntry.objects.latest("id").data["proof"] == "delivery"
    deliver()
    assert verdicts()[2:] == [(1, "completed")]


def test_each_request_of_an_attempt_is_the_same_event_under_another_signature(
    sink: Sink,
):
    endpoint = EndpointFactory(url=sink.url)
    stage(endpoint)
    sink.behave = Receiver(by_the_contract, NEW_SECRET)

    deliver()

    both, alone = sink.requests
    assert both.body == alone.body
    assert both.headers["X-ACW-Event-Id"] == alone.headers["X-ACW-Event-Id"]
    assert both.headers["X-ACW-Signature"] != alone.headers["X-ACW-Signature"]
    assert len(both.headers["webhook-signature"].split(" ")) == 2
    assert len(alone.headers["webhook-signature"].split(" ")) == 1
    assert "X-ACW-Signature-Other" not in alone.headers


def test_a_receiver_that_refuses_both_secrets_refuses_the_event(sink: Sink):
    endpoint = EndpointFactory(url=sink.url)
    stage(endpoint)
    sink.behave = sinks.answer(401)

    job = deliver()

    assert job.status == Status.DEAD
    assert verdicts() == [(1, "permanent"), (1, "repeated"), (1, "repeated")][::-1]
    assert secrets_of(endpoint) == [SECRET, NEW_SECRET]


def test_a_refusal_that_would_be_tried_again_is_sent_at_once_under_the_other_secret(
    sink: Sink, settings: Settings
):
    settings.NOTIFY_WEBHOOK_RETRY_STATUSES = {401}
    endpoint = EndpointFactory(url=sink.url)
    stage(endpoint)
    sink.behave = Receiver(by_the_contract, NEW_SECRET)

    job = deliver()

    assert (job.status, job.attempts) == (Status.COMPLETED, 1)
    assert secrets_of(endpoint) == [NEW_SECRET, SECRET]


@pytest.mark.parametrize("status", [301, 410, 429, 500])
def test_what_no_signature_can_mend_is_sent_once(sink: Sink, status: int):
    stage(EndpointFactory(url=sink.url))
    sink.behave = sinks.answer(status)

    deliver()

    assert len(sink.requests) == 1


def test_a_second_request_that_fails_on_the_way_leaves_the_delivery_to_be_tried_again(
    sink: Sink,
):
    stage(EndpointFactory(url=sink.url))
    sink.behave = sinks.in_turn(sinks.answer(401), sinks.reset)

    job = deliver()

    assert (job.status, job.attempts) == (Status.PENDING, 1)
    assert verdicts() == [(1, "repeated"), (1, "retry")]


def test_without_a_rotation_a_refusal_is_final(sink: Sink):
    EndpointFactory(url=sink.url)
    sink.behave = sinks.answer(401)

    job = deliver()

    assert job.status == Status.DEAD
    assert len(sink.requests) == 1


def changed_meanwhile(
    change: Callable[[], object], *, endpoint: WebhookEndpoint | None = None
) -> list[Sequence[str]]:
    """Which secrets sign the requests to a receiver that refuses the first, during which something changes."""
    endpoint = endpoint or EndpointFactory()
    _, attempt = attempts.open_attempt(
        endpoint.pk, job_id=uuid7(), number=1, topic=TOPIC
    )
    assert attempt is not None
    exchanges = iter([401, 204])

    def post(_: WebhookAttempt, __: Sequence[str]) -> tuple[Judgement, Exchange]:
        change()
        exchange = Exchange(status=next(exchanges), duration=dt.timedelta(0))
        return judge(exchange, now=timezone.now()), exchange

    sent = overlap.send(attempt, overlap.secrets_for(attempt), post)
    return [one.secrets for one in sent]


def set_by_hand() -> None:
    endpoint = WebhookEndpoint.objects.get()
    endpoint.set_secret(NEW_SECRET)
    endpoint.save()


def test_a_secret_that_comes_while_the_request_is_under_way_is_tried_too():
    assert changed_meanwhile(set_by_hand) == [[SECRET], [NEW_SECRET]]


def test_an_endpoint_that_goes_while_the_request_is_under_way_is_not_asked_again():
    assert changed_meanwhile(WebhookEndpoint.objects.all().delete) == [[SECRET]]


def test_a_secret_that_cannot_be_read_is_not_tried(settings: Settings):
    def lose_the_key() -> None:
        settings.ACW_ENCRYPTION_KEYS = [encryption.new_key()]

    assert changed_meanwhile(lose_the_key) == [[SECRET]]


def test_an_attempt_has_one_place_in_flight_whatever_it_takes():
    places: list[int] = []

    def look() -> None:
        held = WebhookAttempt.objects.filter(slot__isnull=False)
        places.append(held.count())

    endpoint = EndpointFactory()
    stage(endpoint)

    signed = changed_meanwhile(look, endpoint=endpoint)

    assert signed == [[SECRET, NEW_SECRET], [NEW_SECRET]]
    assert places == [1, 1]
