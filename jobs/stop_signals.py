"""The signals by which a supervisor or an operator stops a worker."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def heeded() -> list[signal.Signals]:
    """The stop signals, without SIGHUP where it is ignored, as under ``nohup``: it stays so."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [each for each in STOP_SIGNALS if each != signal.SIGHUP or not ignored]


class StopSignals:
    """SIGTERM, SIGINT and SIGHUP stop the worker; the second SIGTERM or SIGINT ends the process at once.

    SIGHUP is nobody's impatience: where a terminal goes, the system and its shell send one each, and a supervisor sends
    it along with its SIGTERM. The handler only sets an event. Off the main thread, where Python allows no handlers, it
    does nothing.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in heeded():
                self._before[number] = signal.signal(number, self._on_signal)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGHUP:
            if self._asked:
                os._exit(128 + number)
            self._asked = True
        self._stop()
