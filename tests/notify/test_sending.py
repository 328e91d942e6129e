from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import json
import logging
import time
import uuid

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from pytest_django import Settings

from jobs.identifiers import uuid7
from notify import attempts, sending
from notify.delivery import Judgement, Verdict
from notify.models import WebhookAttempt, WebhookEndpoint
from tests.notify import sinks
from tests.notify.factories import SECRET, TOPIC, EndpointFactory
from tests.notify.sinks import Connection, Received, Sink

pytestmark = pytest.mark.django_db
BODY = '{"title":"é😀\u2028"}'


def opened(endpoint: WebhookEndpoint, job_id: uuid.UUID) -> WebhookAttempt:
    _, attempt = attempts.open_attempt(
        endpoint.pk, job_id=job_id, number=3, topic=TOPIC
    )
    assert attempt is not None
    return attempt


def send(
    endpoint: WebhookEndpoint, job_id: uuid.UUID | None = None
) -> tuple[WebhookAttempt, Judgement]:
    job_id = job_id or uuid7()
    attempt = opened(endpoint, job_id)
    return attempt, sending.send(attempt, event_id=job_id, body=BODY)


def test_a_delivery_is_signed_and_recorded(sink: Sink):
    sink.behave = sinks.answer(202, body=b"thanks")
    endpoint = EndpointFactory(url=sink.url)
    event_id = uuid.uuid4()

    attempt, judgement = send(endpoint, event_id)

    [request] = sink.requests
    timestamp = request.headers["X-ACW-Timestamp"]
    signed = f"{timestamp}.".encode() + request.body
    expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert request.body == BODY.encode()
    assert request.headers["X-ACW-Signature"] == f"sha256={expected}"
    assert request.headers["X-ACW-Event-Id"] == str(event_id)
    assert request.headers["X-ACW-Topic"] == TOPIC
    assert request.headers["Content-Type"] == "application/json"
    assert abs(int(timestamp) - time.time()) < 60
    assert judgement.verdict is Verdict.COMPLETED

    row = WebhookAttempt.objects.get()
    assert row == attempt
    assert (row.job_id, row.endpoint, row.topic) == (event_id, endpoint, TOPIC)
    assert (row.number, row.status, row.verdict) == (3, 202, "completed")
    assert row.finished_at is not None
    assert row.finished_at >= row.started_at
    assert row.duration is not None
    assert row.duration > dt.timedelta(0)
    assert (row.peer, row.excerpt, row.cause) == ("127.0.0.1", "thanks", "")


@pytest.mark.django_db(transaction=True)
def test_the_row_is_there_and_open_while_the_request_is_under_way(sink: Sink):
    seen: list[tuple[int, bool]] = []

    def look_into_the_table(answering: Connection, _: Received) -> None:
        rows = WebhookAttempt.objects.open()
        seen.append((rows.count(), connection.in_atomic_block))
        connection.close()
        answering.send(sinks.head(204))

    sink.behave = look_into_the_table
    send(EndpointFactory(url=sink.url))

    assert seen == [(1, False)]
    assert WebhookAttempt.objects.open().count() == 0


@pytest.mark.parametrize(
    ("status", "verdict"), [(500, "retry"), (404, "permanent"), (301, "permanent")]
)
def test_an_answer_that_is_no_success_is_recorded_with_its_cause(
    sink: Sink, status: int, verdict: str
):
    sink.behave = sinks.answer(status)

    _, judgement = send(EndpointFactory(url=sink.url))

    row = WebhookAttempt.objects.get()
    assert judgement.verdict.value == row.verdict == verdict
    assert row.status == status
    assert row.cause.startswith(f"HTTP {status}")


def test_a_failure_on_the_way_is_recorded_without_a_status(
    sink: Sink, settings: Settings
):
    settings.NOTIFY_WEBHOOK_TIMEOUT = dt.timedelta(seconds=0.2)
    sink.behave = sinks.say_nothing

    send(EndpointFactory(url=sink.url))

    row = WebhookAttempt.objects.get()
    assert (row.status, row.verdict) == (None, "retry")
    assert row.cause == "no complete answer within 0.2 s"
    assert row.finished_at is not None


def test_a_network_that_is_not_allowed_is_refused_for_good(
    sink: Sink, settings: Settings
):
    settings.NOTIFY_WEBHOOK_ALLOW_NETWORKS = []

    _, judgement = send(EndpointFactory(url=sink.url))

    assert judgement.verdict is Verdict.PERMANENT
    assert sink.connections == []
    assert "loopback" in WebhookAttempt.objects.get().cause


def test_a_secret_that_cannot_be_read_waits_for_its_key(sink: Sink, settings: Settings):
    endpoint = EndpointFactory(url=sink.url)
    settings.ACW_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    _, judgement = send(endpoint)

    assert judgement.verdict is Verdict.RETRY
    assert sink.connections == []
    assert "ACW_ENCRYPTION_KEYS" in WebhookAttempt.objects.get().cause


def test_a_receiver_that_repeats_what_it_gets_does_not_give_it_away(sink: Sink):
    """The address, the endpoint's own headers, and the secrets that signed it."""
    path = "/T0SECRET/hook?token=T0KEN-1"
    endpoint = EndpointFactory(url=f"http://127.0.0.1:{sink.port}{path}")
    endpoint.set_headers({"Authorization": "Bearer T0P-SECRET"})
    endpoint.save()

    def repeat(connection: Connection, request: Received) -> None:
        said = b"Cannot " + request.head + f" by {SECRET}".encode()
        sinks.answer(404, body=said)(connection, request)

    sink.behave = repeat
    send(endpoint)

    excerpt = WebhookAttempt.objects.get().excerpt
    assert excerpt.startswith("Cannot POST *** HTTP/1.1")
    assert excerpt.endswith(" by ***")
    for hidden in ("T0SECRET", "T0KEN", "T0P-SECRET", SECRET):
        assert hidden not in excerpt


def test_what_the_receiver_says_is_made_fit_to_store_and_show(sink: Sink):
    body = b"\x00\x1b[31mred\xff\n https://me:hunter2@host/"
    sink.behave = sinks.answer(500, body=body)

    send(EndpointFactory(url=sink.url))

    excerpt = WebhookAttempt.objects.get().excerpt
    assert excerpt.startswith("��[31mred�\n https://")
    assert "hunter2" not in excerpt


def test_neither_logs_nor_rows_hold_url_or_secret(
    sink: Sink, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    sink.behave = sinks.in_turn(sinks.answer(200), sinks.answer(500), sinks.reset)
    endpoint = EndpointFactory(url=sink.url)
    for _ in range(3):
        send(endpoint)

    logged = repr([record.__dict__ for record in caplog.records])
    rows = repr(list(WebhookAttempt.objects.values()))
    assert "webhook.delivered" in caplog.text
    assert "webhook.attempt_failed" in caplog.text
    for hidden in ("SECRET-TOKEN", SECRET):
        assert hidden not in caplog.text + logged + rows


def test_a_test_event_is_signed_and_goes_to_a_disabled_endpoint_too(sink: Sink):
    endpoint = EndpointFactory(url=sink.url, enabled=False, topics=[])

    attempt, judgement = sending.send_test(endpoint)

    [request] = sink.requests
    body = json.loads(request.body)
    assert judgement.verdict is Verdict.COMPLETED
    assert request.headers["X-ACW-Topic"] == body["topic"] == "webhook.test"
    assert body["data"] == {"endpoint": endpoint.name}
    assert uuid.UUID(request.headers["X-ACW-Event-Id"]).version == 7
    assert attempt.job_id is None


def test_what_came_of_an_attempt_can_be_said_with_what_to_do(sink: Sink):
    sink.behave = sinks.in_turn(sinks.answer(204), sinks.answer(404))
    endpoint = EndpointFactory(url=sink.url)

    told = [sending.describe(sending.send_test(endpoint)[0]) for _ in range(2)]

    assert told[0].startswith("Delivered: HTTP 204 in ")
    assert told[1].startswith("Not delivered in ")
    assert " ms: HTTP 404 Not Found. Correct the path of the endpoint's URL" in told[1]


def test_what_is_not_sent_leaves_a_row_that_says_why():
    job_id = uuid7()

    sending.skip(None, job_id=job_id, number=1, topic=TOPIC, cause="it was deleted")

    row = WebhookAttempt.objects.get()
    assert (row.verdict, row.cause) == ("skipped", "it was deleted")
    assert row.job_id == job_id
    assert row.finished_at is not None


def test_an_attempt_whose_row_is_gone_meanwhile_is_no_failure(sink: Sink):
    attempt = opened(EndpointFactory(url=sink.url), uuid7())
    WebhookAttempt.objects.all().delete()

    judgement = sending.send(attempt, event_id=uuid7(), body=BODY)

    assert judgement.verdict is Verdict.COMPLETED
    assert WebhookAttempt.objects.count() == 0


def test_a_test_event_for_an_endpoint_that_is_gone_is_not_sent(sink: Sink):
    endpoint = EndpointFactory(url=sink.url)
    WebhookEndpoint.objects.all().delete()

    with pytest.raises(WebhookEndpoint.DoesNotExist, match=endpoint.name):
        sending.send_test(endpoint)
    assert sink.connections == []


def test_a_test_event_shows_what_an_endpoint_has_of_its_own(
    sink: Sink, settings: Settings
):
    settings.NOTIFY_WEBHOOK_RETRY_STATUSES = {404}
    endpoint = EndpointFactory(url=sink.url, timeout=dt.timedelta(seconds=0.2))
    endpoint.set_headers({"Authorization": "Bearer abc"})
    endpoint.save()
    sink.behave = sinks.in_turn(sinks.answer(404), sinks.answer(429), sinks.say_nothing)

    attempts_made = [sending.send_test(endpoint)[0] for _ in range(3)]

    assert [
        (attempt.status, attempt.verdict, attempt.cause) for attempt in attempts_made
    ] == [
        (404, "retry", "HTTP 404 Not Found"),
        (429, "permanent", "HTTP 429 Too Many Requests"),
        (None, "retry", "no complete answer within 0.2 s"),
    ]
    assert {request.headers["Authorization"] for request in sink.requests} == {
        "Bearer abc"
    }


def test_headers_that_cannot_be_read_wait_for_their_key(sink: Sink, settings: Settings):
    endpoint = EndpointFactory(url=sink.url)
    [old], new = settings.ACW_ENCRYPTION_KEYS, Fernet.generate_key().decode()
    settings.ACW_ENCRYPTION_KEYS = [new]
    endpoint.set_headers({"X-T": "7"})
    WebhookEndpoint.objects.update(encrypted_headers=endpoint.encrypted_headers)
    settings.ACW_ENCRYPTION_KEYS = [old]

    attempt, judgement = sending.send_test(endpoint)

    assert judgement.verdict is Verdict.RETRY
    assert "ACW_ENCRYPTION_KEYS" in attempt.cause
    assert sink.connections == []


def test_a_bundle_that_is_gone_is_told_and_tried_again(sink: Sink, settings: Settings):
    settings.NOTIFY_WEBHOOK_CA_BUNDLE = "/nowhere/authorities.pem"
    endpoint = EndpointFactory(url=sink.url.replace("http:", "https:"))

    attempt, judgement = sending.send_test(endpoint)

    assert judgement.verdict is Verdict.RETRY
    assert attempt.cause.startswith("NOTIFY_WEBHOOK_CA_BUNDLE: ")
    assert sink.connections == []
