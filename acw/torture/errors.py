"""What keeps a run from coming to a result."""

from __future__ import annotations


class TortureError(Exception):
    """It cannot be done here, or could not go on; the message says why, and what to do."""
