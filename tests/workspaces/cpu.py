"""How much of the CPU something takes, which other processes do not change."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds_of(work: Callable[[], object]) -> float:
    """Seconds of CPU that this thread spends on it."""
    began = time.thread_time()
    work()
    return time.thread_time() - began
