"""Where a thread of this process is: what an operator wants to see of one that hangs."""

from __future__ import annotations

import sys
import threading
import traceback

from jobs.outcomes import TRACEBACK_LIMIT
from jobs.redaction import storable


def where(thread: threading.Thread) -> str:
    """The thread's stack at this moment, as it may be stored and logged: redacted and capped.

    A thread that does not run has none, and that is said instead.
    """
    lines = text_of(thread.ident)
    if not lines:
        return f"({thread.name} does not run)"
    return storable(
        f"{thread.name} is here (innermost call last):\n{lines}", TRACEBACK_LIMIT
    )


def text_of(thread_id: int | None) -> str:
    """The stack of the thread with this identifier, neither redacted nor capped; "" where none runs."""
    frame = sys._current_frames().get(thread_id or 0)
    return "" if frame is None else "".join(traceback.format_stack(frame))
