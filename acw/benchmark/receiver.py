"""A receiver of webhooks on loopback, as quick as Python makes one: it reads, counts and says that all is well.

A program of its own: `python -m acw.benchmark.receiver FILE` writes the port that it has got into the file, receives from
the first word at the gate to the second, and reports the requests and how many different events they were.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from pathlib import Path

from acw.benchmark import gate

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
EVENT_ID = b"x-acw-event-id"

_BACKLOG = 1_024


class Receiver:
    """What has come in."""

    def __init__(self) -> None:
        self.requests = 0
        self.events: set[bytes] = set()

    def take(self, event: bytes) -> None:
        """Note one request."""
        self.requests += 1
        self.events.add(event)


class Request(asyncio.Protocol):
    """One connection with one request."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, body = self._read.partition(b"\r\n\r\n")
        if not end:
            return
        fields = dict(_field(line) for line in head.split(b"\r\n")[1:])
        if len(body) < int(fields.get(b"content-length", b"0")):
            return
        self._receiver.take(fields.get(EVENT_ID, b""))
        assert isinstance(self._transport, asyncio.Transport)  # noqa: S101 - it is TCP's
        self._transport.write(ANSWER)
        self._transport.close()


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.lower(), value.strip()


async def receive(listening: socket.socket, receiver: Receiver) -> None:
    """Receive until the second word at the gate."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def await_word() -> None:
        sys.stdin.readline()
        loop.call_soon_threadsafe(ended.set)

    server = await loop.create_server(
        lambda: Request(receiver), sock=listening, backlog=_BACKLOG
    )
    async with server:
        threading.Thread(target=await_word, daemon=True).start()
        await ended.wait()


def main(port_file: Path) -> None:
    """Be a receiver, see above."""
    with socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG) as listening:
        port_file.write_text(str(listening.getsockname()[1]))
        gate.wait()
        receiver = Receiver()
        asyncio.run(receive(listening, receiver))
    gate.report({"requests": receiver.requests, "events": len(receiver.events)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
