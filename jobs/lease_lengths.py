"""How long a lease lasts that nobody extends: one length for every type of job, and those of the types that have their own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

STUCK_AFTER = 1.0
"""Seconds after which what waits behind a running job is given back."""

SHORTEST_LEASE = 2 * dt.timedelta(seconds=STUCK_AFTER)
"""Shorter, and jobs that wait behind a slow one are not given back in time."""

SAFE_LEASE = dt.timedelta(seconds=10)
"""Shorter, and a busy host loses leases."""

LONGEST_LEASE = dt.timedelta(days=3_650)
"""Longer is a slip, and far longer has an end that the table does not take: then nothing could be claimed at all."""

# Looked up for each row that is leased or extended: of the jobs in a batch the lengths differ.
LENGTH = "coalesce((%(own_leases)s::interval[])[array_position(%(own_types)s::text[], jobs.type)], %(lease)s)"
"""SQL for the length of the lease of a row of ``jobs``, by :attr:`LeaseLengths.parameters`."""


@dataclass(frozen=True)
class LeaseLengths:
    """``own`` maps those types that have a length of their own to it; ``default`` is that of all others, also unknown ones.

    What a worker writes into the table and how long it trusts what it holds must be the same: it keeps one of these for
    as long as it runs.
    """

    default: dt.timedelta
    own: Mapping[str, dt.timedelta] = field(default_factory=dict)

    def seconds(self, type_name: str) -> float:
        """How long a lease of this type lasts."""
        return self._own_seconds.get(type_name, self._default_seconds)

    @property
    def shortest(self) -> dt.timedelta:
        """The length that heartbeats have to keep up with."""
        return min([self.default, *self.own.values()])

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """For :data:`LENGTH`; ``lease`` is the default."""
        # A literal, since a driver makes an array of such objects one by one, for each statement.
        lengths = [
            f"{length // dt.timedelta(microseconds=1)} us"
            for length in self.own.values()
        ]
        return {
            "lease": self.default,
            "own_types": list(self.own),
            "own_leases": f"{{{','.join(lengths)}}}",
        }

    @cached_property
    def _own_seconds(self) -> Mapping[str, float]:
        return {name: length.total_seconds() for name, length in self.own.items()}

    @cached_property
    def _default_seconds(self) -> float:
        return self.default.total_seconds()
