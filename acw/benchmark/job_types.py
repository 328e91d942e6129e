"""The names of the benchmark's job types; their handlers are registered in its own processes only."""

from __future__ import annotations

NOOP = "bench.noop"
NOOP_DELETED = "bench.noop_deleted"
MIXED = "bench.mixed"
LATENCY = "bench.latency"
ALL = {NOOP, NOOP_DELETED, MIXED, LATENCY}
