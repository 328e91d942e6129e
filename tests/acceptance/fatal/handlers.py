"""``test.fatal`` writes a line, then does what ``how`` says; nothing, for the quick ones of the same type."""

from __future__ import annotations

import ctypes
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from jobs.context import JobContext
from jobs.registry import job_handler


@dataclass
class Fatal:
    ledger: str
    line: str
    how: str = ""


@job_handler("test.fatal", max_attempts=3)
def fatal(context: JobContext, payload: Fatal) -> None:
    with Path(payload.ledger).open("a") as file:
        file.write(f"{payload.line}\n")
    match payload.how:
        case "os._exit":
            os._exit(7)
        case "segmentation fault":
            ctypes.string_at(0)
        case "out of memory":
            # As the kernel ends a process that it takes memory back from.
            os.kill(os.getpid(), signal.SIGKILL)
