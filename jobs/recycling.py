"""When a worker process is to make room for a new one: after so many jobs, or at so much memory."""

from __future__ import annotations

import os
import re
import resource
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STATM = Path("/proc/self/statm")
_UNITS = {
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
}
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?([KMG]i?B)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a process may do before it is replaced. ``max_rss`` is bytes of resident memory; None is no limit."""

    max_jobs: int | None = None
    max_rss: int | None = None

    def reached(self, executed: int) -> dict[str, Any] | None:
        """Which limit is reached, as facts for the log; None where none is. ``executed`` jobs have been executed."""
        if self.max_jobs is not None and executed >= self.max_jobs:
            return {
                "reason": "max_jobs",
                "executed": executed,
                "max_jobs": self.max_jobs,
            }
        if self.max_rss is not None and (rss := resident_memory()) > self.max_rss:
            return {
                "reason": "max_rss",
                "executed": executed,
                "rss": rss,
                "max_rss": self.max_rss,
            }
        return None


NO_LIMITS = Limits()


def resident_memory() -> int:
    """The bytes of memory that this process has resident; where the system does not tell, the most that it had."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except (OSError, IndexError, ValueError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return pages * os.sysconf("SC_PAGE_SIZE")


def parse_size(text: str) -> int:
    """The bytes that ``512MB`` or ``1.5GiB`` writes; ValueError says what is accepted."""
    match = _SIZE.fullmatch(text)
    size = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    if size < 1:
        raise ValueError(
            f"must be a size with its unit, such as 512MB, 1.5GB or 512MiB, got {text!r}"
        )
    return size
