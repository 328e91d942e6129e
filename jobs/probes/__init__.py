"""The queue's own probes for the doctor; importing this package registers them."""

from __future__ import annotations

from jobs.probes import backlog, database, vacuum, workers

__all__ = ["backlog", "database", "vacuum", "workers"]
