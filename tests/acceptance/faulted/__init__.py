"""An app whose job type writes a ledger: who executed what, under which lease."""

from __future__ import annotations

PROBE_EVERY = "TEST_PROBE_EVERY"
"""An environment variable: after how many seconds a listener asks whether it hears, where half a minute is too long."""

BRIEF_LEASE = "TEST_BRIEF_LEASE"
"""Has ``test.brief`` be there, which does as ``test.record`` with leases of so many seconds."""
