"""Receivers for the load test: one that answers at once and notes when each event came, and one that never answers.

A program of its own: `python -m tests.benchmarks.webhooks.receivers FILE` writes the two ports into the file, receives from
the first word at the gate to the second, and reports when (monotonic) it had which event first, and how many requests hang.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from pathlib import Path

from acw.benchmark import gate
from acw.benchmark.receiver import Receiver, Request

_BACKLOG = 1_024


class Timed(Receiver):
    """Knows when each event came first."""

    def __init__(self) -> None:
        super().__init__()
        self.came: dict[str, float] = {}

    def take(self, event: bytes) -> None:
        super().take(event)
        self.came.setdefault(event.decode(), time.monotonic())


class Hanging(asyncio.Protocol):
    """Takes the request and never answers."""

    count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Hanging.count += 1


async def receive(
    well: socket.socket, hanging: socket.socket, receiver: Receiver
) -> None:
    """Receive until the second word at the gate."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def await_word() -> None:
        sys.stdin.readline()
        loop.call_soon_threadsafe(ended.set)

    await loop.create_server(lambda: Request(receiver), sock=well, backlog=_BACKLOG)
    await loop.create_server(Hanging, sock=hanging, backlog=_BACKLOG)
    threading.Thread(target=await_word, daemon=True).start()
    await ended.wait()


def main(ports_file: Path) -> None:
    """Be both receivers, see above."""
    well, hanging = (
        socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG) for _ in range(2)
    )
    ports_file.write_text(
        json.dumps([sink.getsockname()[1] for sink in (well, hanging)])
    )
    gate.wait()
    receiver = Timed()
    asyncio.run(receive(well, hanging, receiver))
    gate.report({"came": receiver.came, "hanging": Hanging.count})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
