"""What stops a measurement."""

from __future__ import annotations


class BenchmarkError(Exception):
    """It cannot be measured; the message says why, and what to do."""


class CountError(BenchmarkError):
    """Jobs were lost or done twice: whatever was measured beside that is no figure."""
