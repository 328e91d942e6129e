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
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return f"({thread.name} does not run)"
    lines = traceback.format_stack(frame)
    return storable(
        f"{thread.name} is here (innermost call last):\n{''.join(lines)}",
        TRACEBACK_LIMIT,
    )
