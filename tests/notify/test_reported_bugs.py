"""Twenty bugs that were reported of other senders of webhooks, and the tests that keep them away from this one.

Each is either a test of this module, ``test_NN_…``, named after its symptom, or one of another module, which stands in
``ELSEWHERE``. All of them send by the real sender to a receiver on loopback, and where the queue has a part in it, by the
real job.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import ipaddress
import logging
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from jobs.models import Job, Status
from jobs.testing import run_due_jobs
from notify import encryption, outbound, sending
from notify.delivery import Verdict
from notify.dispatch import Event, dispatch
from notify.exchange import Exchange, Failure
from notify.models import Notification, WebhookAttempt, WebhookEndpoint
from tests.notify import flow, sinks
from tests.notify.factories import SECRET, TOPIC, AdminFactory, EndpointFactory
from tests.notify.sinks import Connection, Received, Sink

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("webhooks_on")]

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")]

HOSTILE = "notify/test_outbound_hostile.py"
SLOW = "acceptance/test_slow_receivers.py"
ELSEWHERE: dict[int, tuple[str, list[tuple[str, str]]]] = {
    1: (
        "a receiver that drips holds the sender for ever",
        [
            (HOSTILE, "test_without_a_whole_head_it_ends_at_the_deadline"),
            (
                HOSTILE,
                "test_a_peer_that_never_speaks_ends_at_the_deadline_with_tls_too",
            ),
            ("notify/test_outbound_tls.py", "test_the_deadline_holds"),
        ],
    ),
    3: (
        "a redirect's body is read to its end",
        [(HOSTILE, "test_no_more_is_read_than_is_kept")],
    ),
    4: (
        "an endless or compressed answer fills the memory",
        [
            (HOSTILE, "test_nothing_is_decompressed"),
            (HOSTILE, "test_no_more_is_read_than_is_kept"),
        ],
    ),
    10: (
        "a secret from a file ends in a line end, and every signature is wrong",
        [
            (
                "notify/test_endpoints.py",
                "test_migrate_makes_the_first_endpoint_and_never_touches_one",
            ),
            (
                "notify/test_signing.py",
                "test_what_files_and_copying_add_to_a_secret_is_taken_off",
            ),
        ],
    ),
    11: (
        "the published libraries refuse the signature",
        [
            (
                "notify/test_signing.py",
                "test_the_signatures_are_those_of_the_published_vector",
            ),
            (
                "notify/test_signing.py",
                "test_a_published_library_takes_what_is_genuine_and_nothing_else",
            ),
        ],
    ),
    14: (
        "what failed in one moment is tried again in one moment",
        [
            (
                "jobs/test_backoff.py",
                "test_no_second_has_twice_its_share_of_what_failed_together",
            ),
            (
                "notify/health/test_settling.py",
                "test_when_a_try_succeeds_windows_of_1_2_4_and_so_on_go_out_oldest_first",
            ),
        ],
    ),
    15: (
        "one slow receiver takes every worker",
        [(SLOW, "test_a_receiver_that_hangs_holds_up_no_other")],
    ),
    16: (
        "a lease shorter than the exchange delivers twice",
        [
            (
                SLOW,
                "test_an_answer_later_than_the_lease_is_waited_for_and_nothing_sent_twice",
            )
        ],
    ),
    18: (
        "a success with a broken body counts as a failure",
        [(HOSTILE, "test_whatever_is_wrong_with_the_body_the_status_stands")],
    ),
}


def test_each_of_the_twenty_has_its_test():
    here = {int(name[5:7]) for name in globals() if name[5:7].isdigit()}
    tests = Path(__file__).resolve().parents[1]
    missing = [
        f"{module}: {name}"
        for _, tested in ELSEWHERE.values()
        for module, name in tested
        if f"def {name}(" not in (tests / module).read_text()
    ]

    assert here | set(ELSEWHERE) == set(range(1, 21))
    assert missing == []


def post(url: str, **options: Any) -> Exchange:
    arguments: dict[str, Any] = {
        "body": b"{}",
        "headers": {},
        "timeout": dt.timedelta(seconds=20),
        "allowed": LOOPBACK,
    }
    return outbound.post(url, **(arguments | options))


def found(address: str, port: int) -> list[Any]:
    return socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)


def test_02_a_name_server_that_hangs_is_no_exception_to_the_timeout():
    hanging = threading.Event()

    def resolver(host: str, port: int) -> Any:
        hanging.wait()

    exchange = post(
        "http://hook.test/", resolver=resolver, timeout=dt.timedelta(seconds=0.1)
    )
    hanging.set()

    assert exchange.failure is Failure.DEADLINE
    assert exchange.phases.dns_ms is not None
    assert exchange.phases.connect_ms is None


def test_05_a_redirect_to_the_inside_is_not_followed_by_a_test_event_either(
    sink: Sink,
):
    with Sink(sinks.answer(200)) as inside:
        sink.behave = sinks.answer(302, {"Location": inside.url})
        attempt, _ = sending.send_test(EndpointFactory(url=sink.url))
        flow.tell()
        [job] = run_due_jobs()

        assert inside.connections == []
    assert (attempt.status, attempt.verdict) == (302, "retry")
    assert f"redirects to http://127.0.0.1:{inside.port}; " in attempt.cause
    assert job.status == Status.PENDING
    assert len(sink.requests) == 2


REDIRECTS = (300, 301, 302, 303, 304, 307, 308)


def test_06_only_a_2xx_is_a_success(sink: Sink):
    answers = [
        (status, location) for status in REDIRECTS for location in ("", "/login")
    ]
    taken = []
    for status, location in answers:
        sink.behave = sinks.answer(status, {"Location": location} if location else {})
        _, judgement = sending.send_test(EndpointFactory(url=sink.url))
        if judgement.verdict is Verdict.COMPLETED:
            taken.append((status, location))

    assert taken == []
    assert len(sink.requests) == len(answers)
    assert {request.request_line.split()[0] for request in sink.requests} == {"POST"}


def http_date(later: dt.timedelta) -> str:
    when = timezone.now() + later
    return when.strftime("%a, %d %b %Y %H:%M:%S GMT")


def test_07_a_429_is_no_refusal_and_its_retry_after_is_kept_to(
    sink: Sink, settings: Settings
):
    settings.JOBS_BACKOFF_BASE = dt.timedelta(seconds=1)
    hour = 3600
    asked = {
        "120": (120, 150),
        http_date(dt.timedelta(seconds=120)): (115, 150),
        "-5": (0, 2),
        "0": (0, 2),
        "junk": (0, 2),
        "1e9": (0, 2),
        "²": (0, 2),
        "1000000000": (hour, hour * 1.25),
    }
    found = {}
    for value in asked:
        sink.behave = sinks.send_raw(
            b"HTTP/1.1 429 Busy\r\nRetry-After: " + value.encode() + b"\r\n\r\n"
        )
        EndpointFactory(url=sink.url)
        flow.tell()
        before = timezone.now()
        [job] = run_due_jobs()
        assert (job.status, job.attempts) == (Status.PENDING, 1)
        found[value] = (job.run_at - before).total_seconds()
        Job.objects.all().delete()
        WebhookEndpoint.objects.all().delete()

    early = {
        value: waited for value, waited in found.items() if waited < asked[value][0]
    }
    # What is asked, a quarter at most, and the time that the test itself takes.
    late = {
        value: waited
        for value, waited in found.items()
        if waited > asked[value][1] + 20
    }
    assert (early, late) == ({}, {})


def test_08_whatever_the_text_each_try_sends_the_bytes_that_were_stored(sink: Sink):
    sink.behave = sinks.in_turn(sinks.answer(500), sinks.reset, sinks.answer(204))
    EndpointFactory(url=sink.url)
    text = "é 😀 \u2028 \\u0000 </script> \x7f"
    dispatch(Event(topic=TOPIC, recipients=[], title=text, data={text: [text, 1e100]}))

    run_due_jobs()
    flow.run_again_now()
    [job] = flow.run_again_now()

    stored = job.payload["body"].encode()
    assert [request.body for request in sink.requests] == [stored] * 3
    assert "\u2028".encode() in stored
    for request in sink.requests:
        signed = request.headers["X-ACW-Timestamp"].encode() + b"." + stored
        expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        assert request.headers["X-ACW-Signature"] == f"sha256={expected}"


def test_09_a_line_end_in_a_stored_header_injects_nothing(sink: Sink):
    endpoint = EndpointFactory(url=sink.url)
    endpoint.encrypted_headers = encryption.encrypt(
        '{"X-T": "a\\r\\nX-ACW-Signature: forged"}'
    )
    endpoint.save()
    flow.tell()

    [job] = run_due_jobs()

    assert job.status == Status.DEAD
    assert "the header 'X-T': its value is not printable ASCII" in job.last_error
    assert "forged" not in job.last_error
    assert sink.connections == []


@pytest.mark.parametrize(
    "spelling",
    [
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "localhost",
    ],
)
def test_12_loopback_is_loopback_however_it_is_spelled(
    sink: Sink, settings: Settings, spelling: str
):
    settings.NOTIFY_WEBHOOK_ALLOW_NETWORKS = []

    attempt, _ = sending.send_test(
        EndpointFactory(url=f"http://{spelling}:{sink.port}/")
    )

    assert attempt.verdict == "permanent"
    assert "NOTIFY_WEBHOOK_ALLOW_NETWORKS" in attempt.cause
    assert sink.connections == []


INSIDE, OUTSIDE = "127.0.0.1", "127.0.0.2"
OUTSIDE_ONLY = [ipaddress.ip_network("127.0.0.2/32")]


def test_12_a_name_that_changes_its_address_in_between_gains_nothing():
    """The address that was checked is the one that is reached; there is no second look-up."""
    asked = []

    def rebinding(host: str, port: int) -> Any:
        asked.append(host)
        return found(OUTSIDE if len(asked) == 1 else INSIDE, port)

    with Sink(sinks.answer(204)) as inside:
        exchange = post(
            f"http://hook.test:{inside.port}/",
            resolver=rebinding,
            allowed=OUTSIDE_ONLY,
        )

        assert inside.connections == []
    assert exchange.failure is Failure.CONNECT
    assert asked == ["hook.test"]


def test_12_one_address_inside_among_several_refuses_the_name(sink: Sink):
    exchange = post(
        f"http://hook.test:{sink.port}/",
        resolver=lambda host, port: [*found(OUTSIDE, port), *found(INSIDE, port)],
        allowed=OUTSIDE_ONLY,
    )

    assert exchange.failure is Failure.BLOCKED
    assert sink.connections == []


def test_13_a_kept_connection_that_dies_fails_no_delivery(sink: Sink):
    """The receiver says that it keeps the connection, and breaks it at the next byte."""

    def keep_and_reset(connection: Connection, request: Received) -> None:
        sinks.answer(200, {"Connection": "keep-alive"})(connection, request)
        if connection.socket.recv(1):
            sinks.reset(connection, request)

    sink.behave = keep_and_reset
    EndpointFactory(url=sink.url)
    flow.tell(3)

    jobs = run_due_jobs()

    assert [(job.status, job.attempts) for job in jobs] == [(Status.COMPLETED, 1)] * 3
    assert len(sink.connections) == len(sink.requests) == 3


def test_14_what_failed_together_does_not_return_together(sink: Sink):
    """An endpoint for each, so that none waits for the breaker of all."""
    sink.behave = sinks.answer(500)
    for _ in range(30):
        EndpointFactory(url=sink.url)
    flow.tell()

    run_due_jobs()

    failed = dict(WebhookAttempt.objects.values_list("job_id", "started_at"))
    waits = [(job.run_at - failed[job.pk]).total_seconds() for job in Job.objects.all()]
    assert len(waits) == 30
    assert min(waits) >= 30
    assert len({round(wait, 2) for wait in waits}) > 20


def test_17_a_retry_an_hour_later_is_signed_anew(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
):
    sink.behave = sinks.in_turn(sinks.answer(500), sinks.answer(204))
    EndpointFactory(url=sink.url)
    flow.tell()
    began = int(time.time())
    run_due_jobs()
    later = began + 3600
    monkeypatch.setattr("notify.sending.time.time", lambda: float(later))

    flow.run_again_now()

    first, second = sink.requests
    assert int(first.headers["X-ACW-Timestamp"]) - began < 300
    assert second.headers["X-ACW-Timestamp"] == str(later)
    assert second.headers["X-ACW-Event-Id"] == first.headers["X-ACW-Event-Id"]
    assert second.headers["X-ACW-Signature"] != first.headers["X-ACW-Signature"]
    signed = f"{later}.".encode() + second.body
    expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert second.headers["X-ACW-Signature"] == f"sha256={expected}"


def test_19_dead_letters_are_told_once_to_each_admin_and_to_no_receiver(
    sink: Sink,
):
    admins = [AdminFactory() for _ in range(3)]
    sink.behave = sinks.answer(404)
    EndpointFactory(url=sink.url, topics=["*", "webhook.*"])
    flow.tell(12)

    run_due_jobs()

    assert Job.objects.filter(status=Status.DEAD).count() == Job.objects.count() == 12
    told = Notification.objects.filter(topic="webhook.dead_letter")
    assert sorted(told.values_list("user", flat=True)) == [user.pk for user in admins]
    assert {one.title.split()[0] for one in told} == {"12"}


def everything_stored() -> str:
    """Every row of every table, but what is meant to hold the URL."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        )
        tables = [name for (name,) in cursor.fetchall()]
        stored = []
        for name in tables:
            cursor.execute(f"SELECT to_jsonb(t) - 'url' FROM \"{name}\" AS t")
            stored += [repr(row) for row in cursor.fetchall()]
    return "\n".join(stored)


def test_20_a_url_that_is_a_credential_is_in_no_log_and_no_row(
    sink: Sink, caplog: pytest.LogCaptureFixture, settings: Settings
):
    caplog.set_level(logging.DEBUG)
    AdminFactory()
    endpoint = EndpointFactory(
        url=f"http://127.0.0.1:{sink.port}/T-PATH-SECRET/x?token=QUERY-SECRET"
    )
    endpoint.set_headers({"Authorization": "Bearer HEADER-SECRET"})
    endpoint.save()
    sink.behave = sinks.in_turn(
        sinks.answer(200),
        sinks.answer(301, {"Location": f"{endpoint.url}&again"}),
        sinks.answer(404, body=f"no {endpoint.url} here".encode()),
        sinks.reset,
        sinks.send_raw(b"no HTTP"),
    )
    flow.tell(5)
    run_due_jobs()
    settings.NOTIFY_WEBHOOK_ALLOW_NETWORKS = []
    flow.tell()
    run_due_jobs()
    sending.send_test(endpoint)

    verdicts = set(WebhookAttempt.objects.values_list("verdict", flat=True))
    assert {"completed", "permanent", "retry"} <= verdicts
    assert len(sink.requests) == 5
    assert sink.requests[0].headers["Authorization"] == "Bearer HEADER-SECRET"
    logged = caplog.text + repr([record.__dict__ for record in caplog.records])
    stored = everything_stored()
    assert "webhook.dead_letter" in stored
    for hidden in ("PATH-SECRET", "QUERY-SECRET", "HEADER-SECRET", SECRET):
        assert hidden not in logged
        assert hidden not in stored
