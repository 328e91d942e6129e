"""Stop signals in a command that has something to tidy up."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from jobs.stop_signals import STOP_SIGNALS, heeded


@contextmanager
def cleaning_up_on_signals() -> Iterator[None]:
    """Let the first stop signal end the block as an error does, and none disturb what is then tidied."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in STOP_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)

    before = {number: signal.signal(number, stop) for number in heeded()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
