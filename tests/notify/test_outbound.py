"""The sender against receivers that behave: what is sent, and what is made of the answer."""

from __future__ import annotations

import datetime as dt
import ipaddress
import logging
import os
import random
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from notify import outbound
from notify.exchange import Exchange, Failure, Phases
from tests.notify import sinks
from tests.notify.sinks import Sink

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]
BODY = '{"name":"é😀\u2028"}'.encode()


def post(url: str, **options: Any) -> Exchange:
    arguments: dict[str, Any] = {
        "body": BODY,
        "headers": {"X-ACW-Topic": "test.happened"},
        "timeout": dt.timedelta(seconds=20),
        "allowed": LOOPBACK,
    }
    return outbound.post(url, **(arguments | options))


def test_the_bytes_arrive_as_given_with_the_headers_given(sink: Sink):
    exchange = post(sink.url)

    [request] = sink.requests
    assert exchange.status == 204
    assert exchange.failure is None
    assert exchange.peer == "127.0.0.1"
    assert exchange.duration > dt.timedelta(0)
    assert request.body == BODY
    assert request.request_line == "POST /hook?token=SECRET-TOKEN HTTP/1.1"
    assert request.headers == {
        "Host": f"127.0.0.1:{sink.port}",
        "X-ACW-Topic": "test.happened",
        "User-Agent": "ACW-Webhooks",
        "Connection": "close",
        "Accept-Encoding": "identity",
        "Content-Length": str(len(BODY)),
    }


def test_the_head_is_that_of_the_url_and_no_more_is_sent_than_one_request(sink: Sink):
    post(f"http://127.0.0.1:{sink.port}?a={{b}}", body=b"")

    [request] = sink.requests
    assert request.request_line == "POST /?a=%7Bb%7D HTTP/1.1"
    assert request.headers["Content-Length"] == "0"


def test_what_is_asked_for_is_what_the_operator_wrote(sink: Sink):
    """It may be signed, or compared byte by byte: nothing is decoded, and no segment taken for another."""
    for path in ("//a/../b/./%7Ec/%2e%2e/", "/a;b=1?c=%2f&d=+/../x&&=", "/?"):
        post(f"http://127.0.0.1:{sink.port}{path}")

    assert [request.request_line for request in sink.requests] == [
        "POST //a/../b/./%7Ec/%2e%2e/ HTTP/1.1",
        "POST /a;b=1?c=%2f&d=+/../x&&= HTTP/1.1",
        "POST / HTTP/1.1",
    ]


def test_the_surroundings_add_nothing(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """No proxy, no password file, no cookie of an earlier answer."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    sink.behave = sinks.answer(200, {"Set-Cookie": "session=1; Path=/"})

    exchanges = [post(sink.url), post(sink.url)]

    assert [exchange.status for exchange in exchanges] == [200, 200]
    for request in sink.requests:
        assert not {"Cookie", "Authorization"} & set(request.headers)


def test_each_post_has_a_connection_of_its_own(sink: Sink):
    post(sink.url)
    post(sink.url)

    assert len(sink.connections) == 2


@pytest.mark.parametrize("status", [200, 204, 302, 304, 404, 429, 500, 599])
def test_the_status_is_the_receivers(sink: Sink, status: int):
    sink.behave = sinks.answer(status)

    assert post(sink.url).status == status


@pytest.mark.parametrize("interim", [100, 102, 103])
def test_an_interim_answer_is_passed_over(sink: Sink, interim: int):
    hint = sinks.head(interim, {"Link": "</x>", "Retry-After": "9"})
    final = sinks.head(503, {"Retry-After": "5", "Content-Length": "4"})
    sink.behave = sinks.send_raw(hint + hint + final + b"busy")

    exchange = post(sink.url)

    assert (exchange.status, exchange.retry_after) == (503, "5")
    assert exchange.excerpt == b"busy"


def test_an_interim_answer_alone_is_none(sink: Sink):
    sink.behave = sinks.send_raw(sinks.head(103))

    exchange = post(sink.url)

    assert exchange.failure is Failure.NETWORK
    assert "without an answer" in exchange.cause


def test_whoever_switches_protocols_has_answered(sink: Sink):
    sink.behave = sinks.send_raw(sinks.head(101, {"Upgrade": "x"}))

    assert post(sink.url).status == 101


def test_a_redirect_is_not_followed(sink: Sink):
    with Sink(sinks.answer(200)) as elsewhere:
        sink.behave = sinks.answer(302, {"Location": elsewhere.url})

        exchange = post(sink.url)

        assert elsewhere.connections == []
    assert exchange.status == 302
    assert exchange.redirect == f"http://127.0.0.1:{elsewhere.port}"


def test_retry_after_is_handed_on_as_it_came(sink: Sink):
    sink.behave = sinks.answer(429, {"Retry-After": "120"})

    assert post(sink.url).retry_after == "120"


def test_the_receivers_clock_is_handed_on_as_it_came(sink: Sink):
    date = "Sun, 29 Nov 2026 12:00:00 GMT"
    sink.behave = sinks.answer(401, {"Date": date})

    assert post(sink.url).date == date


def test_each_step_has_its_milliseconds(sink: Sink):
    written_out = post(sink.url)
    by_name = post(f"http://hook.test:{sink.port}/", resolver=resolve_to_loopback)
    refused = post(sink.url, allowed=[])

    steps = [by_name.phases.dns_ms, by_name.phases.connect_ms, by_name.phases.answer_ms]
    assert sum(step or 0 for step in steps) <= by_name.duration.total_seconds() * 1000
    assert None not in steps
    assert written_out.phases.dns_ms is None
    assert written_out.phases.connect_ms is not None
    assert written_out.phases.tls_ms is None
    assert refused.phases == Phases()


def test_the_step_at_which_it_fails_has_its_milliseconds(sink: Sink):
    sink.behave = sinks.say_nothing

    exchange = post(sink.url, timeout=dt.timedelta(seconds=0.2))

    assert exchange.failure is Failure.DEADLINE
    assert exchange.phases.answer_ms is not None


def test_headers_of_the_endpoints_own_are_sent_and_never_beat_ours(sink: Sink):
    extra = {
        "Authorization": "Bearer abc",
        "x-acw-topic": "forged",
        "HOST": "elsewhere",
        "content-length": "0",
        "Expect": "100-continue",
    }
    post(sink.url, extra=extra)

    [request] = sink.requests
    assert request.headers["Authorization"] == "Bearer abc"
    assert request.headers["X-ACW-Topic"] == "test.happened"
    assert request.headers["Host"] == f"127.0.0.1:{sink.port}"
    assert request.body == BODY
    assert b"forged" not in request.head
    assert b"Expect" not in request.head


def test_of_the_body_only_the_beginning_is_kept(sink: Sink):
    sink.behave = sinks.answer(500, body=b"e" * 10_000)

    assert post(sink.url).excerpt == b"e" * outbound.EXCERPT_BYTES


def test_a_body_in_chunks_is_put_together(sink: Sink):
    chunks = b"3\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
    head = sinks.head(500, {"Transfer-Encoding": "chunked"})
    sink.behave = sinks.send_raw(head + chunks)

    exchange = post(sink.url)

    assert exchange.status == 500
    assert exchange.excerpt == b"abcde"


@pytest.mark.parametrize(
    ("url", "cause"),
    [
        ("ftp://host/", "must begin with https:// or http://"),
        ("http://user:pass@host/", "user name or password"),
        (f"http://{'a' * 64}.example/", "each of at most 63"),
        (f"http://{'a.' * 150}example/", "each of at most 63"),
    ],
)
def test_a_url_that_breaks_the_rules_is_not_tried(url: str, cause: str):
    exchange = post(url)

    assert exchange.failure is Failure.INVALID
    assert cause in exchange.cause


@pytest.mark.parametrize("whose", ["headers", "extra"])
@pytest.mark.parametrize(
    "value",
    ["a\nb", "a\r\nX-Evil: 1", "a\x00b", "a\x0bb", "a\n", "é", "日本"],
    ids=ascii,
)
def test_a_header_that_is_not_printable_ascii_is_not_sent(
    sink: Sink, whose: str, value: str
):
    exchange = post(sink.url, **{whose: {"X-Name": value}})

    assert exchange.failure is Failure.INVALID
    assert exchange.cause == "the header 'X-Name': its value is not printable ASCII"
    assert sink.connections == []


def test_a_header_with_spaces_around_its_value_is_not_sent(sink: Sink):
    exchange = post(sink.url, headers={"X-ACW-Topic": " leading space"})

    assert exchange.failure is Failure.INVALID
    assert "has spaces around it" in exchange.cause


def test_an_address_that_is_not_allowed_sees_no_connection(sink: Sink):
    exchange = post(sink.url, allowed=[])

    assert exchange.failure is Failure.BLOCKED
    assert "127.0.0.0/8 (loopback)" in exchange.cause
    assert sink.connections == []


def test_what_no_one_thought_of_is_an_answer_too():
    def resolver(host: str, port: int) -> Any:
        return [("not", "an", "address", "info", ("127.0.0.1", 1))]

    exchange = post("http://hook.test/", resolver=resolver)

    assert exchange.failure is Failure.UNEXPECTED
    assert exchange.cause == "unexpected TypeError while sending"


def resolve_to_loopback(host: str, port: int) -> Any:
    return socket.getaddrinfo("127.0.0.1", port, type=socket.SOCK_STREAM)


def test_whatever_it_is_given_it_raises_nothing():
    """A thousand times nonsense: every one comes to a status or to a failure with its cause."""
    rng = random.Random(7)  # noqa: S311 (for tests)
    alphabet = "aZ09.-_:/?#[]@!$&'()*+,;=% \t\r\n\x00\x7fé\u2028日😀\ud800\\"

    def nonsense(longest: int) -> str:
        return "".join(rng.choices(alphabet, k=rng.randrange(longest)))

    def resolver(host: str, port: int) -> Any:
        kinds: list[type[Exception]] = [OSError, UnicodeError, ValueError, KeyError]
        raise rng.choice(kinds)("no")

    silent = []
    for _ in range(1000):
        url = rng.choice(
            [
                nonsense(40),
                f"http://h{nonsense(80)}/",
                f"https://hook.test{nonsense(20)}",
                f"http://hook.test:{rng.randrange(-9, 70_000)}/{nonsense(20)}",
                f"http://hook.test/{nonsense(20)}",
            ]
        )
        exchange = post(
            url,
            extra={nonsense(9): nonsense(9)} if rng.random() < 0.5 else {},
            resolver=resolver,
            allowed=[],
        )
        if exchange.status is None and not (exchange.failure and exchange.cause):
            silent.append(url)
    assert silent == []


def test_neither_logs_nor_answers_hold_the_url(
    sink: Sink, caplog: pytest.LogCaptureFixture
):
    """Also where a library logs: at every level, and about heads that it cannot read."""
    caplog.set_level(logging.DEBUG)
    broken_head = b"HTTP/1.1 200 OK\r\n: no name\r\nX: 1\r\n\r\n"
    sink.behave = sinks.in_turn(
        sinks.answer(500), sinks.send_raw(broken_head), sinks.reset
    )

    told = [post(sink.url), post(sink.url), post(sink.url), post(sink.url, allowed=[])]

    assert "SECRET-TOKEN" not in caplog.text
    assert "SECRET-TOKEN" not in repr(told)


def test_a_hundred_posts_leave_no_descriptor_and_no_thread_behind(sink: Sink):
    def counts() -> tuple[int, int]:
        for thread in threading.enumerate():
            if thread.name == "webhook-look-up":
                thread.join(timeout=10)
        ours = [t for t in threading.enumerate() if "_serve" not in t.name]
        return len(os.listdir("/proc/self/fd")), len(ours)

    def post_by_name() -> None:
        post(f"http://hook.test:{sink.port}/", resolver=resolve_to_loopback)

    sink.behave = sinks.answer(500, body=b"e" * 10_000)
    post_by_name()
    descriptors, threads = counts()
    for _ in range(100):
        post_by_name()
    # A few of the sink's own may still be closing.
    descriptors_after, threads_after = counts()

    assert descriptors_after - descriptors < 10
    assert threads_after - threads < 10
