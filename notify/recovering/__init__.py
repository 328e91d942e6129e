"""Recovering: sending again, at a pace, all that died for one endpoint since a time."""

from __future__ import annotations

RECOVERY_TYPE = "webhook.recover"
"""The type of the jobs that each send one slice of a recovery."""
