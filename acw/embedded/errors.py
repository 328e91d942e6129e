"""What can go wrong with the embedded server."""

from __future__ import annotations


class ClusterError(RuntimeError):
    """The embedded PostgreSQL cannot be used; the message says why, and the way out."""
