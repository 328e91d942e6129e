"""The sender against receivers that misbehave: it ends at its deadline, and reads no more than it keeps."""

from __future__ import annotations

import datetime as dt
import ipaddress
import tracemalloc

import pytest

from notify import outbound
from notify.exchange import Exchange, Failure
from tests.notify import sinks
from tests.notify.sinks import Behaviour, Sink

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]
SHORT = dt.timedelta(seconds=0.3)
LONG = dt.timedelta(seconds=20)
ONE_MEGABYTE = 1024 * 1024


def post(url: str, *, timeout: dt.timedelta = LONG, body: bytes = b"{}") -> Exchange:
    return outbound.post(url, body=body, headers={}, timeout=timeout, allowed=LOOPBACK)


@pytest.mark.parametrize(
    "behaviour",
    [sinks.say_nothing, sinks.drip_head, sinks.continue_for_ever],
    ids=lambda behaviour: behaviour.__name__,
)
def test_without_a_whole_head_it_ends_at_the_deadline(sink: Sink, behaviour: Behaviour):
    sink.behave = behaviour

    exchange = post(sink.url, timeout=SHORT)

    assert exchange.failure is Failure.DEADLINE
    assert exchange.status is None
    assert exchange.cause == "no complete answer within 0.3 s"
    assert exchange.peer == "127.0.0.1"


@pytest.mark.parametrize(
    ("scheme", "behaviour"),
    [
        ("http:", sinks.say_nothing),
        ("https:", sinks.say_nothing),
        ("https:", sinks.drip_handshake),
    ],
    ids=["plain", "TLS", "a handshake that drips"],
)
def test_a_peer_that_never_speaks_ends_at_the_deadline_with_tls_too(
    sink: Sink, scheme: str, behaviour: Behaviour
):
    sink.answers_before_reading = True
    sink.behave = behaviour

    exchange = post(sink.url.replace("http:", scheme), timeout=SHORT)

    assert exchange.failure is Failure.DEADLINE


def test_a_peer_that_takes_the_body_too_slowly_ends_at_the_deadline(sink: Sink):
    sink.answers_before_reading = True
    sink.behave = sinks.say_nothing

    exchange = post(sink.url, timeout=SHORT, body=b"x" * 50 * ONE_MEGABYTE)

    assert exchange.failure is Failure.DEADLINE


@pytest.mark.parametrize(
    ("behaviour", "cause"),
    [
        (sinks.send_raw(b""), "closed the connection without an answer"),
        (sinks.send_raw(b"SSH-2.0-OpenSSH\r\n"), "not HTTP: BadStatusLine"),
        (sinks.send_raw(b"HTTP/1.1 abc\r\n\r\n"), "not HTTP: BadStatusLine"),
        (sinks.send_raw(b"HTTP/1.1 200 " + b"a" * 70_000), "not HTTP: LineTooLong"),
        (
            sinks.send_raw(b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 200 + b"\r\n"),
            "not HTTP: HTTPException",
        ),
        (
            sinks.send_raw(sinks.head(100) * 100_000),
            "not HTTP: AnswerTooLong",
        ),
        (sinks.reset, "the connection broke: Connection reset by peer"),
    ],
    ids=[
        *("nothing", "another protocol", "no status", "a line", "a head"),
        *("interim answers without end", "a reset"),
    ],
)
def test_what_is_not_an_answer_is_a_network_failure(
    sink: Sink, behaviour: Behaviour, cause: str
):
    sink.behave = behaviour

    exchange = post(sink.url)

    assert exchange.failure is Failure.NETWORK
    assert exchange.cause.endswith(cause)


@pytest.mark.parametrize(
    ("behaviour", "excerpt"),
    [
        (sinks.send_raw(sinks.head(200, {"Content-Length": "100"}) + b"abc"), b"abc"),
        (
            sinks.send_raw(sinks.head(200, {"Transfer-Encoding": "chunked"}) + b"zz"),
            b"",
        ),
        (
            sinks.send_raw(sinks.head(200, {"Content-Encoding": "gzip"}) + b"not"),
            b"not",
        ),
        (sinks.send_raw(sinks.head(204) + b"body all the same"), b""),
        (sinks.send_raw(b"HTTP/1.0 200 OK\r\n\r\nold"), b"old"),
    ],
    ids=["truncated", "bad chunk", "bad gzip", "204 with a body", "HTTP/1.0"],
)
def test_whatever_is_wrong_with_the_body_the_status_stands(
    sink: Sink, behaviour: Behaviour, excerpt: bytes
):
    sink.behave = behaviour

    exchange = post(sink.url)

    assert exchange.failure is None
    assert exchange.status in (200, 204)
    assert exchange.excerpt == excerpt


def test_a_body_that_drips_does_not_hold_the_sender(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(outbound, "EXCERPT_SECONDS", 0.2)
    sink.behave = sinks.drip_body

    exchange = post(sink.url)

    assert exchange.status == 200
    assert 0 < len(exchange.excerpt) < outbound.EXCERPT_BYTES


@pytest.mark.parametrize(
    "first",
    [
        sinks.head(302, {"Location": "/x", "Content-Length": "209715200"}),
        sinks.head(200),
    ],
    ids=["a redirect of 200 MB", "a body without end"],
)
def test_no_more_is_read_than_is_kept(sink: Sink, first: bytes):
    sink.behave = sinks.send_for_ever(first)

    exchange = post(sink.url)

    assert exchange.status in (200, 302)
    assert exchange.excerpt == b"x" * outbound.EXCERPT_BYTES
    [connection] = sink.connections
    # What the sockets' buffers took; the sender itself reads a few kilobytes.
    assert connection.sent < 10 * ONE_MEGABYTE


def test_nothing_is_decompressed(sink: Sink):
    sink.behave = sinks.gzip_bomb(megabytes=50)

    tracemalloc.start()
    try:
        exchange = post(sink.url)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert exchange.status == 200
    assert exchange.excerpt.startswith(b"\x1f\x8b")
    assert peak < 5 * ONE_MEGABYTE


def test_an_answer_before_the_body_was_taken_counts(sink: Sink):
    sink.answers_before_reading = True
    sink.behave = sinks.answer_early(413)

    exchange = post(sink.url, body=b"x" * 20 * ONE_MEGABYTE)

    assert exchange.status == 413
