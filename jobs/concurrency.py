"""How many handlers this process may run at one time: for handlers that share its threads fairly."""

from __future__ import annotations

MOST_THREADS = 1_000
"""In one process. They share one interpreter and hold a connection each; more is a slip of the hand."""

_threads = 0


def threads() -> int:
    """The threads of this process's pool, whatever they were set by; 0 where it has none."""
    return _threads


def announce(threads: int) -> None:
    """Called by the pool that is made: it will have so many."""
    global _threads
    _threads = threads
