"""A runner whose ticks are counted."""

from __future__ import annotations

import threading

from acw.torture import ledger
from jobs.registry import Summary, runner


@runner("torture_tick")
def torture_tick(stop: threading.Event) -> Summary:
    """Notes itself."""
    with ledger.tick("torture_tick"):
        return {}
