"""The sender over TLS: whom it trusts, what it says when it does not, and that its deadline holds there too."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from notify import outbound
from notify.deadline import TimedSocket
from notify.exchange import Exchange, Failure
from tests.notify import sinks
from tests.notify.certificates import Authority
from tests.notify.sinks import Behaviour, Sink

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8")]
LONG = dt.timedelta(seconds=20)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def resolve_to_loopback(host: str, port: int) -> Any:
    return socket.getaddrinfo("127.0.0.1", port, type=socket.SOCK_STREAM)


def post(
    sink: Sink, *, bundle: Path | None = None, timeout: dt.timedelta = LONG
) -> Exchange:
    return outbound.post(
        f"https://hook.test:{sink.port}/",
        body=b"{}",
        headers={},
        timeout=timeout,
        allowed=LOOPBACK,
        ca_bundle=str(bundle or ""),
        resolver=resolve_to_loopback,
    )


def test_the_name_is_checked_and_not_the_address(authority: Authority):
    with Sink(sinks.answer(204), authority.server_context("hook.test")) as sink:
        exchange = post(sink, bundle=authority.bundle)

        assert exchange.status == 204
        assert sink.requests[0].headers["Host"] == f"hook.test:{sink.port}"
    assert exchange.phases.tls_ms is not None


def test_it_is_known_until_when_the_certificate_holds(authority: Authority):
    with Sink(sinks.answer(204), authority.server_context("hook.test")) as sink:
        exchange = post(sink, bundle=authority.bundle)

    assert exchange.certificate_until is not None
    left = exchange.certificate_until - dt.datetime.now(dt.UTC)
    assert dt.timedelta(hours=23) < left <= dt.timedelta(days=1)


@pytest.mark.parametrize("behave", [sinks.drip_head, sinks.say_nothing])
def test_the_deadline_holds(authority: Authority, behave: Behaviour):
    with Sink(behave, authority.server_context("hook.test")) as sink:
        exchange = post(
            sink, bundle=authority.bundle, timeout=dt.timedelta(seconds=0.5)
        )

    assert exchange.failure is Failure.DEADLINE
    assert exchange.peer == "127.0.0.1"
    assert exchange.certificate_until is not None


def test_a_certificate_for_another_name_is_refused(authority: Authority):
    with Sink(sinks.answer(204), authority.server_context("other.test")) as sink:
        exchange = post(sink, bundle=authority.bundle)

        assert sink.requests == []
    assert exchange.failure is Failure.TLS
    assert "hook.test" in exchange.cause
    assert exchange.phases.tls_ms is not None


def test_a_certificate_of_an_unknown_authority_is_refused(authority: Authority):
    with Sink(sinks.answer(204), authority.server_context("hook.test")) as sink:
        exchange = post(sink)

    assert exchange.failure is Failure.TLS
    assert exchange.cause.startswith("the certificate is refused: ")


def test_a_certificate_that_has_expired_is_refused(authority: Authority):
    expired = authority.server_context("hook.test", valid=dt.timedelta(seconds=-1))
    with Sink(sinks.answer(204), expired) as sink:
        exchange = post(sink, bundle=authority.bundle)

    assert exchange.failure is Failure.TLS
    assert exchange.cause == "the certificate is refused: certificate has expired"


def test_an_authority_of_ones_own_may_be_plainer_than_the_newest_python_asks(
    tmp_path: Path,
):
    """Python 3.13 refuses one that does not say what its key is for, unless told otherwise."""
    plain = Authority(tmp_path, says_usage=False)
    with Sink(sinks.answer(204), plain.server_context("hook.test")) as sink:
        assert post(sink, bundle=plain.bundle).status == 204


def test_a_bundle_that_is_gone_is_a_verdict_that_names_the_setting(tmp_path: Path):
    """And one that another try can change: the file may come back."""
    with Sink(sinks.answer(204)) as sink:
        exchange = post(sink, bundle=tmp_path / "gone.pem")

        assert sink.connections == []
    assert exchange.failure is Failure.TLS
    assert exchange.cause.startswith("NOTIFY_WEBHOOK_CA_BUNDLE: ")
    assert exchange.cause.endswith("gone.pem cannot be used: No such file or directory")


def test_plain_http_on_a_tls_address_is_a_tls_failure(sink: Sink):
    sink.answers_before_reading = True
    sink.behave = sinks.send_raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    assert post(sink).failure is Failure.TLS


def test_an_answer_before_the_body_was_taken_counts(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
):
    """Over TLS a receiver that hangs up while it is sent to is an error of its own."""

    def hung_up(timed: TimedSocket, data: bytes) -> None:
        raise ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "EOF occurred")

    monkeypatch.setattr(TimedSocket, "sendall", hung_up)
    with Sink(sinks.answer(413), authority.server_context("hook.test")) as sink:
        sink.answers_before_reading = True
        exchange = post(sink, bundle=authority.bundle)

    assert exchange.status == 413
