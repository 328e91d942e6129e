"""For modules that are run as programs: what kills the process that calls it, and processes to be killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def after(wrapped: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, that dies when it has done what it does."""

    def dying(*args: Any, **options: Any) -> Any:
        wrapped(*args, **options)
        die()

    return dying


def in_a_child(act: Callable[[], object]) -> None:
    """Call it in a process of its own, and print that one's status: minus a signal's number, or 1 where nothing killed it."""
    pid = os.fork()
    if not pid:
        try:
            act()
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
