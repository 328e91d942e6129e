"""Lines of progress that git writes while it works, for somebody who watches: bounded, and not too many."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from workspaces.plumbing import presentable

EVERY = 0.5
"""Seconds between two lines that are told, at least."""

LONGEST = 150
"""Characters of a line."""

_MOST = 4 * 1024
_END_OF_LINE = re.compile(rb"[\r\n]")


class Progress:
    """Given what comes on stderr, tells the newest whole line to ``tell``."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._rest = b""
        self._told_at = -EVERY
        self._told = ""

    def __call__(self, chunk: bytes) -> None:
        """Take the next bytes; errors of ``tell`` go on to the caller."""
        # Of a flood only the end: progress is what was written last.
        *lines, self._rest = _END_OF_LINE.split((self._rest + chunk)[-_MOST:])
        now = time.monotonic()
        if now - self._told_at < EVERY:
            return
        newest = next((line for line in reversed(lines) if line.strip()), None)
        if newest is None:
            return
        text = presentable.value(newest.decode(errors="replace"), longest=LONGEST)
        self._told_at = now
        if text.strip() != self._told:
            self._told = text.strip()
            self._tell(self._told)
