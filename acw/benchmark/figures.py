"""Measured figures, each beside what bounds it, and the arithmetic of rounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line of the report.

    ``ceiling`` is what the figure is a ratio to: the plain loop's rate, the floor's time, the same thing without what is
    in question; None where nothing bounds it. ``against`` says what that is. ``paired`` are the
    ratios within each round, whose median is the ratio: the machine's drift is not in them.
    """

    name: str
    value: float
    unit: str
    ceiling: float | None
    goal: str = ""
    against: str = ""
    lowest: float | None = None
    highest: float | None = None
    paired: tuple[float, ...] = ()

    @property
    def ratio(self) -> float | None:
        """The figure as a part of its ceiling, or a multiple of its floor."""
        if self.paired:
            return statistics.median(self.paired)
        return self.value / self.ceiling if self.ceiling else None


def of_rounds(
    name: str,
    values: Sequence[float],
    *,
    unit: str,
    ceilings: Sequence[float] = (),
    against: str = "",
    goal: str = "",
) -> Figure:
    """The median of the rounds; ``ceilings`` are those of the same rounds, in their order."""
    return Figure(
        name=name,
        value=statistics.median(values),
        unit=unit,
        ceiling=statistics.median(ceilings) if ceilings else None,
        goal=goal,
        against=against,
        lowest=min(values),
        highest=max(values),
        paired=tuple(
            value / ceiling for value, ceiling in zip(values, ceilings, strict=True)
        )
        if ceilings
        else (),
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of the values that ``percent`` of them do not exceed; raises ValueError for none."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank) - 1, 0)]
