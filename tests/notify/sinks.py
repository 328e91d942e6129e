"""Receivers on loopback that behave as receivers do, and as they should not.

A sink reads one request from each connection and then does what its behaviour says, on the raw socket.
"""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Received:
    """One request as it came in."""

    head: bytes
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return dict(line.split(": ", 1) for line in lines if line)

    @property
    def request_line(self) -> str:
        return self.head.decode("latin-1").split("\r\n", 1)[0]


class Connection:
    """One accepted connection, for a behaviour to answer on."""

    def __init__(self, accepted: socket.socket, stopping: threading.Event) -> None:
        self.socket = accepted
        self.sent = 0
        self._stopping = stopping

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)
        self.sent += len(data)

    def pause(self, seconds: float) -> bool:
        """Wait; return whether to go on."""
        return not self._stopping.wait(seconds)

    def wait_until_stopped(self) -> None:
        self._stopping.wait()

    def read_request(self) -> Received:
        data = b""
        while b"\r\n\r\n" not in data:
            part = self.socket.recv(65536)
            if not part:
                return Received(data, b"")
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        request = Received(head, body)
        length = int(request.headers.get("Content-Length", "0"))
        while len(body) < length:
            part = self.socket.recv(65536)
            if not part:
                break
            body += part
        return Received(head, body)


Behaviour = Callable[[Connection, Received], None]


@dataclass
class Sink:
    """A running receiver. ``behave`` may be changed between requests."""

    behave: Behaviour
    tls: ssl.SSLContext | None = None
    requests: list[Received] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    answers_before_reading: bool = False

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/hook?token=SECRET-TOKEN"

    def __enter__(self) -> Sink:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        # Closing a socket does not wake the thread that accepts on it; this does.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=10)
            assert not thread.is_alive()

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            self._start(self._serve, accepted)

    def _serve(self, accepted: socket.socket) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(accepted.close)
            # The peer may be gone at any time: that is what many tests are about.
            stack.enter_context(contextlib.suppress(OSError))
            if self.tls is not None:
                accepted = self.tls.wrap_socket(accepted, server_side=True)
                stack.callback(accepted.close)
            connection = Connection(accepted, self._stopping)
            self.connections.append(connection)
            request = Received(b"", b"")
            if not self.answers_before_reading:
                request = connection.read_request()
                self.requests.append(request)
            self.behave(connection, request)


def head(status: int, headers: Mapping[str, str] | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status} Status"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def answer(
    status: int, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> Behaviour:
    """Answer properly."""

    def behave(connection: Connection, _: Received) -> None:
        length = {} if status in (204, 304) else {"Content-Length": str(len(body))}
        connection.send(head(status, {**length, **(headers or {})}) + body)

    return behave


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """The first request gets the first behaviour, and so on; the last goes on for ever."""
    left: Iterator[Behaviour] = iter(behaviours[:-1])

    def behave(connection: Connection, request: Received) -> None:
        next(left, behaviours[-1])(connection, request)

    return behave


def send_raw(data: bytes) -> Behaviour:
    """Send these bytes and close."""
    return lambda connection, _: connection.send(data)


def answer_early(status: int) -> Behaviour:
    """Answer at once, then take the request and throw it away."""

    def behave(connection: Connection, _: Received) -> None:
        connection.send(head(status, {"Connection": "close"}))
        connection.socket.shutdown(socket.SHUT_WR)
        while connection.socket.recv(65536):
            pass

    return behave


def say_nothing(connection: Connection, _: Received) -> None:
    """Take the request and never answer."""
    connection.wait_until_stopped()


def drip_head(connection: Connection, _: Received) -> None:
    """Send an endless head, a byte at a time."""
    connection.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while connection.pause(0.02):
        connection.send(b"a")


def drip_handshake(connection: Connection, _: Received) -> None:
    """Begin a TLS handshake message of 16 KiB and send it a byte at a time."""
    connection.send(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc")
    while connection.pause(0.02):
        connection.send(b"\x03")


def continue_for_ever(connection: Connection, _: Received) -> None:
    """Send one 100 Continue after the other."""
    while connection.pause(0.005):
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")


def drip_body(connection: Connection, _: Received) -> None:
    """Answer 200, then send the body a byte at a time, for ever."""
    connection.send(head(200, {"Content-Length": "1000000"}))
    while connection.pause(0.02):
        connection.send(b"x")


def send_for_ever(first: bytes) -> Behaviour:
    """Send this and then bytes without end, as fast as they are taken."""

    def behave(connection: Connection, _: Received) -> None:
        connection.send(first)
        while connection.pause(0):
            connection.send(b"x" * 65536)

    return behave


def reset(connection: Connection, _: Received) -> None:
    """Break the connection off with a RST."""
    connection.socket.setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    connection.socket.close()


def gzip_bomb(megabytes: int) -> Behaviour:
    """Answer 200 with zeros, compressed a thousand to one."""
    packed = gzip.compress(bytes(megabytes * 1024 * 1024))
    return answer(200, {"Content-Encoding": "gzip"}, packed)
