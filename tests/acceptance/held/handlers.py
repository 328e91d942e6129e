"""``test.append`` writes a line; ``test.hold`` writes one, then waits for a file or for its worker's stop."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from jobs.context import JobContext
from jobs.registry import job_handler


@dataclass
class Append:
    ledger: str
    line: str


@dataclass
class Hold:
    ledger: str
    until: str
    stops: bool = True


@job_handler("test.append")
def append(context: JobContext, payload: Append) -> None:
    _write(payload.ledger, payload.line)


@job_handler("test.hold", max_attempts=3)
def hold(context: JobContext, payload: Hold) -> None:
    _write(payload.ledger, f"begun {context.attempt}")
    while not Path(payload.until).exists():
        if context.wait(dt.timedelta(milliseconds=20)) and payload.stops:
            _write(payload.ledger, "stopped")
            return
    _write(payload.ledger, "ended")


def _write(ledger: str, line: str) -> None:
    with Path(ledger).open("a") as file:
        file.write(line + "\n")
