"""Handlers that go on until they are asked to stop, and then do as they like.

With ``ACCEPTANCE_RARE_BEATS`` set, a worker's heartbeat comes too seldom for a test to wait for it.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from jobs import heartbeat
from jobs.context import JobContext
from jobs.registry import job_handler

if "ACCEPTANCE_RARE_BEATS" in os.environ:
    heartbeat.LONGEST_BEAT = dt.timedelta(hours=1)


@dataclass
class Endless:
    ledger: str


@job_handler("test.unwanted")
def unwanted(context: JobContext, payload: Endless) -> None:
    _write(payload.ledger, "begun")
    while not context.wait(dt.timedelta(hours=1)):
        pass
    if context.cancel_requested:
        _write(payload.ledger, "asked to stop")
    context.check_cancelled()


@job_handler("test.stubborn")
def stubborn(context: JobContext, payload: Endless) -> None:
    _write(payload.ledger, "begun")
    while not context.wait(dt.timedelta(hours=1)):
        pass


@job_handler("test.unreachable")
def unreachable(context: JobContext, payload: Endless) -> None:
    _write(payload.ledger, "begun")
    threading.Event().wait()


def _write(ledger: str, line: str) -> None:
    with Path(ledger).open("a") as file:
        file.write(line + "\n")
