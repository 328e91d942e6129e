"""Ties a process to the one that has started it."""

from __future__ import annotations

import os
import threading

_STDIN = 0


def end_with_stdin() -> None:
    """End this process when its standard input ends: whoever started it holds the other end, killed or not."""
    threading.Thread(target=_end_with_stdin, daemon=True).start()


def _end_with_stdin() -> None:
    # Unbuffered: a buffer's lock, held here, would be a fatal error when the interpreter ends.
    while os.read(_STDIN, 1):
        pass
    os._exit(1)
