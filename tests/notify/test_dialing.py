from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Sequence

import pytest

from notify import targets
from notify.deadline import Deadline
from notify.dialing import MAX_TRIED, AddressInfo, Dialer, DialFailed
from notify.exchange import Failure
from tests.notify.sinks import Sink

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")]


def answers(*addresses: str, port: int = 80) -> list[AddressInfo]:
    return [
        (
            socket.AF_INET6 if ":" in address else socket.AF_INET,
            socket.SOCK_STREAM,
            socket.IPPROTO_TCP,
            "",
            (address, port, 0, 0) if ":" in address else (address, port),
        )
        for address in addresses
    ]


class Resolver:
    """A name server that gives prepared answers, one after the other."""

    def __init__(self, *replies: list[AddressInfo] | Exception) -> None:
        self._replies = list(replies)
        self.asked: list[tuple[str, int]] = []

    def __call__(self, host: str, port: int) -> Sequence[AddressInfo]:
        self.asked.append((host, port))
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


def dial(url: str, resolver: Resolver, *, allowed=(), seconds: float = 20) -> str:
    """Dial and hang up; return the address reached."""
    dialer = Dialer(
        targets.parse(url),
        allowed=allowed,
        deadline=Deadline(seconds),
        resolver=resolver,
    )
    dialer.dial().close()
    assert dialer.peer is not None
    return dialer.peer


def test_the_name_is_looked_up_once_and_the_address_that_was_checked_is_reached(
    sink: Sink,
):
    rebinding = Resolver(answers("127.0.0.1", port=sink.port), answers("10.0.0.1"))

    peer = dial(f"http://hook.example:{sink.port}/", rebinding, allowed=LOOPBACK)

    assert peer == "127.0.0.1"
    assert rebinding.asked == [("hook.example", sink.port)]


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
def test_without_a_port_it_is_the_schemes_own(scheme: str, port: int):
    resolver = Resolver(answers("10.0.0.1"))

    with pytest.raises(DialFailed):
        dial(f"{scheme}://hook.example/", resolver)

    assert resolver.asked == [("hook.example", port)]


@pytest.mark.parametrize(
    ("found", "network"),
    [
        (["127.0.0.1"], "127.0.0.0/8"),
        (["::ffff:127.0.0.1"], "127.0.0.0/8"),
        (["169.254.169.254"], "169.254.0.0/16"),
        (["64:ff9b::a9fe:a9fe"], "64:ff9b::/96"),
        (["1.1.1.1", "10.0.0.1"], "10.0.0.0/8"),
        (["1.1.1.1"] * MAX_TRIED + ["10.0.0.1"], "10.0.0.0/8"),
    ],
)
def test_one_refused_address_among_the_answers_refuses_the_name(
    found: list[str], network: str
):
    with pytest.raises(DialFailed, match=r"hook\.example") as failed:
        dial("http://hook.example/", Resolver(answers(*found)))

    assert failed.value.failure is Failure.BLOCKED
    assert network in str(failed.value)
    assert "NOTIFY_WEBHOOK_ALLOW_NETWORKS" in str(failed.value)


@pytest.mark.parametrize(
    "spelling", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:7f00:1]"]
)
def test_odd_spellings_of_loopback_are_refused(spelling: str):
    target = targets.parse(f"http://{spelling}/")
    with pytest.raises(DialFailed) as failed:
        Dialer(target, allowed=(), deadline=Deadline(20)).dial()

    assert failed.value.failure is Failure.BLOCKED


@pytest.mark.parametrize("host", ["10.0.0.1", "[fd00::1]", "10.1"])
def test_an_address_that_is_written_out_is_not_looked_up_and_checked_all_the_same(
    host: str,
):
    resolver = Resolver()

    with pytest.raises(DialFailed) as failed:
        dial(f"http://{host}/", resolver)

    assert failed.value.failure is Failure.BLOCKED
    assert resolver.asked == []


def test_a_name_that_is_not_known_may_be_known_later():
    unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(DialFailed, match="Name or service not known") as failed:
        dial("http://hook.example/", Resolver(unknown))

    assert failed.value.failure is Failure.DNS


@pytest.mark.parametrize("reply", [[], UnicodeError("label too long")])
def test_an_answer_that_no_one_expects_is_a_failed_look_up(reply):
    with pytest.raises(DialFailed, match=r"hook\.example") as failed:
        dial("http://hook.example/", Resolver(reply))

    assert failed.value.failure is Failure.DNS


def test_a_name_server_that_hangs_is_waited_for_until_the_deadline():
    hanging = threading.Event()

    def resolver(host: str, port: int) -> Sequence[AddressInfo]:
        hanging.wait()
        return []

    target = targets.parse("http://hook.example/")
    with pytest.raises(DialFailed) as failed:
        Dialer(target, allowed=(), deadline=Deadline(0.05), resolver=resolver).dial()
    hanging.set()

    assert failed.value.failure is Failure.DEADLINE


def test_the_next_address_is_tried_where_one_refuses(sink: Sink):
    found = answers("::1", "127.0.0.1", port=sink.port)

    peer = dial(f"http://hook.example:{sink.port}/", Resolver(found), allowed=LOOPBACK)

    assert peer == "127.0.0.1"


def test_where_all_refuse_the_last_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    found = answers("::1", "127.0.0.1", port=port)

    with pytest.raises(DialFailed, match=f"127.0.0.1 port {port}: Connection refused"):
        dial(f"http://hook.example:{port}/", Resolver(found), allowed=LOOPBACK)


def test_an_address_that_swallows_packets_ends_at_the_deadline():
    # A listener whose queue is full: the system answers no further connection.
    with socket.socket() as full, socket.socket() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting.connect(full.getsockname())
        port = full.getsockname()[1]
        found = answers("127.0.0.1", port=port)

        with pytest.raises(DialFailed, match="no answer") as failed:
            dial(
                f"http://hook.example:{port}/",
                Resolver(found),
                allowed=LOOPBACK,
                seconds=0.2,
            )

    assert failed.value.failure is Failure.DEADLINE
