"""The signals by which a supervisor or an operator stops a worker."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class StopSignals:
    """SIGTERM, SIGINT and SIGHUP stop the worker; the second one ends the process at once.

    One that is ignored stays so, as SIGHUP under ``nohup``. The handler only sets an event. Off the main thread, where Python allows no handlers, it does nothing.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._seen = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._on_signal)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._seen:
            os._exit(128 + number)
        self._seen = True
        self._stop()
