"""What keeps a schema from being made."""

from __future__ import annotations


class ScratchError(Exception):
    """There can be no schema here; the message says why, and what to do."""
