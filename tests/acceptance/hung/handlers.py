"""``test.hang`` does not look at its context; ``test.take_long`` does; ``test.eat`` keeps the memory that it takes."""

from __future__ import annotations

import datetime as dt
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from jobs.context import JobContext
from jobs.registry import job_handler


@dataclass
class Hang:
    ledger: str
    until: str
    own_thread: bool = False


@dataclass
class TakeLong:
    ledger: str
    seconds: float


@dataclass
class Eat:
    ledger: str
    line: str
    megabytes: int


_eaten: list[bytes] = []


@job_handler(
    "test.hang",
    timeout=dt.timedelta(seconds=1),
    backoff=lambda n: dt.timedelta(hours=1),
)
def hang(context: JobContext, payload: Hang) -> None:
    _write(payload.ledger, "begun")
    if payload.own_thread:
        # No daemon, as a library's may be none.
        threading.Thread(target=threading.Event().wait).start()
    while not Path(payload.until).exists():
        threading.Event().wait(0.02)
    _write(payload.ledger, "came back")


@job_handler("test.take_long")
def take_long(context: JobContext, payload: TakeLong) -> None:
    _write(payload.ledger, "begun")
    until = time.monotonic() + payload.seconds
    while (left := until - time.monotonic()) > 0:
        context.wait(dt.timedelta(seconds=left))
    context.check_lease()
    _write(payload.ledger, "ended")


@job_handler("test.eat")
def eat(context: JobContext, payload: Eat) -> None:
    _eaten.append(b"x" * (payload.megabytes * 1_000_000))
    # So that the process comes to look at its memory between two of them.
    context.wait(dt.timedelta(milliseconds=50))
    _write(payload.ledger, payload.line)


def _write(ledger: str, line: str) -> None:
    with Path(ledger).open("a") as file:
        file.write(line + "\n")
