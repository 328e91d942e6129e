"""``test.record`` enters into its ledger when it begins and when it ends; in between it does what its payload says."""

from __future__ import annotations

import datetime as dt
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path

from jobs import listener
from jobs.context import JobContext
from jobs.registry import job_handler
from tests.acceptance.faulted import BRIEF_LEASE, PROBE_EVERY

if PROBE_EVERY in os.environ:
    listener.PROBE_EVERY = float(os.environ[PROBE_EVERY])


@dataclass
class Record:
    """The first attempt sends ``signal`` to its own process. ``seconds`` are waited, ``until`` is a file that has to
    come, and so many attempts as ``fails`` says raise.
    """

    ledger: str
    seconds: float = 0.0
    until: str = ""
    signal: str = ""
    stops: bool = False
    fails: int = 0


@job_handler("test.record", max_attempts=9)
def record(context: JobContext, payload: Record) -> None:
    _enter(context, payload, "begun")
    if payload.signal and context.attempt == 1:
        _send(signal.Signals[payload.signal])
    if payload.seconds:
        context.wait(dt.timedelta(seconds=payload.seconds))
    pause = threading.Event()
    while payload.until and not Path(payload.until).exists():
        if payload.stops and context.should_stop:
            break
        pause.wait(0.02)
    if context.attempt <= payload.fails:
        raise RuntimeError(f"attempt {context.attempt} was to fail")
    _enter(context, payload, "ended")


if BRIEF_LEASE in os.environ:
    job_handler(
        "test.brief",
        max_attempts=9,
        lease=dt.timedelta(seconds=float(os.environ[BRIEF_LEASE])),
    )(record)


def _send(number: signal.Signals) -> None:
    if number == signal.SIGSTOP:
        # To this thread, which so does not go on before the whole process has stopped and continued.
        signal.pthread_kill(threading.get_ident(), number)
    else:
        os.kill(os.getpid(), number)


def _enter(context: JobContext, payload: Record, what: str) -> None:
    line = (
        f"{context.job_id} {context.lease_seq} {context.attempt} {os.getpid()} {what}\n"
    )
    with Path(payload.ledger).open("a") as file:
        file.write(line)  # one write of a line: nobody's come in between
