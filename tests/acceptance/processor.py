"""How much of a processor a process takes: what spins takes a whole one for as long as it lasts."""

from __future__ import annotations

import os
from pathlib import Path

SPINNING = 0.5
"""A share of one core that no worker comes near which only waits."""


class ProcessorUse:
    """Of the process with this id, from now on. Read from ``/proc``."""

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._used, self._began = self._seconds(), _uptime()

    def share(self) -> float:
        """The share of one core that it has taken since."""
        return (self._seconds() - self._used) / (_uptime() - self._began)

    def _seconds(self) -> float:
        fields = self._stat.read_text().rpartition(")")[2].split()
        user, system = int(fields[11]), int(fields[12])
        return (user + system) / os.sysconf("SC_CLK_TCK")


def _uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])
