"""``test_slot`` writes which slot of the schedule it is for; ``test_fatal`` ends its process; ``test_slow`` waits for a file."""

from __future__ import annotations

import datetime as dt
import os
import threading
from pathlib import Path

from jobs.models import RunnerState
from jobs.registry import runner


def _write(line: str) -> None:
    ledger = os.open(os.environ["TEST_TICKS"], os.O_WRONLY | os.O_APPEND)
    os.write(ledger, f"{line}\n".encode())
    os.close(ledger)


@runner("test_slot")
def test_slot(stop: threading.Event) -> dict[str, int]:
    state = RunnerState.objects.get(pk="test_slot")
    slot = state.next_run_at - dt.timedelta(seconds=1)
    _write(f"{slot.timestamp():.3f} {os.getpid()}")
    return {"written": 1}


@runner("test_fatal")
def test_fatal(stop: threading.Event) -> dict[str, int]:
    _write(f"begun {os.getpid()}")
    os._exit(9)


@runner("test_slow")
def test_slow(stop: threading.Event) -> dict[str, int]:
    _write(f"begun {os.getpid()}")
    pause = threading.Event()
    while not Path(os.environ["TEST_TICKS"]).with_name("go").exists():
        pause.wait(0.05)
    _write(f"ended {os.getpid()}")
    return {"waited": 1}
