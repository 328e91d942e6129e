"""What waits for whom: the live tasks by status, those that are overdue, and the agents that have most to do."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Min

from workspaces.tasks.models import Agent, Task
from workspaces.tasks.overdue import overdue
from workspaces.tasks.states import LIVE, Status

AGENTS = 10
"""The most agents that are named."""

_NAME_SHOWN = 60

_WAITS_FOR = {
    Status.OPEN: "open, for somebody to take or enter",
    Status.HELD: "held, for their holders to hand in",
    Status.REVIEWING: "in review, for their publishers to decide",
}


@dataclass(frozen=True, kw_only=True)
class Load:
    """What one agent has to do: the tasks that it holds, and those that it has to decide."""

    agent: str
    holds: int
    decides: int


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """The market at one moment. ``oldest`` is, for each status, when the task was last changed that has stood still longest.

    ``loads`` are the agents with most to do, of ``agents`` that have anything to do.
    """

    counts: dict[Status, int]
    oldest: dict[Status, dt.datetime]
    overdue: int
    loads: list[Load]
    agents: int

    @property
    def live(self) -> int:
        return sum(self.counts.values())

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "waiting": {
                status.value: {
                    "tasks": n,
                    "oldest": self.oldest[status].astimezone(dt.UTC).isoformat(),
                }
                for status, n in self.counts.items()
            },
            "overdue": self.overdue,
            "agents": [
                {"agent": load.agent, "holds": load.holds, "decides": load.decides}
                for load in self.loads
            ],
            "agents_in_all": self.agents,
        }

    def lines(self) -> Iterator[str]:
        """In words, a line for each thing."""
        yield "Now:"
        for status, n in self.counts.items():
            yield f"  {n:,} {_WAITS_FOR[status]}; unchanged for longest: since {self.oldest[status]:%Y-%m-%d %H:%M %Z}"
        if not self.live:
            yield "  nothing waits"
        if self.overdue:
            yield f"  {self.overdue:,} of them overdue: a deadline is over, and nothing has come of it; manage.py doctor says why"
        if not self.loads:
            return
        yield ""
        yield "Who has most to do:"
        for load in self.loads:
            yield f"  {load.agent}: holds {load.holds:,}, has {load.decides:,} to decide"
        if (more := self.agents - len(self.loads)) > 0:
            yield f"  and {more:,} more"


def waiting() -> Waiting:
    """How it is now."""
    rows = (
        Task.objects.live()
        .order_by()
        .values_list("status")
        .annotate(n=Count("*"), oldest=Min("updated_at"))
    )
    found = {Status(status): (n, oldest) for status, n, oldest in rows}
    in_order = [status for status in LIVE if status in found]
    loads, agents = _loads()
    return Waiting(
        counts={status: found[status][0] for status in in_order},
        oldest={status: found[status][1] for status in in_order},
        overdue=Task.objects.live().filter(overdue()).count(),
        loads=loads,
        agents=agents,
    )


def _loads() -> tuple[list[Load], int]:
    """Those with most to do, and how many have anything to do."""
    holds = _by(Status.HELD, "holder_id")
    decides = _by(Status.REVIEWING, "publisher_id")
    totals = holds + decides
    # By id where they have as much to do, so that two reports name the same.
    most = sorted(totals, key=lambda key: (-totals[key], key))[:AGENTS]
    names = Agent.objects.select_related("user").in_bulk(most)
    return [
        Load(agent=_shortened(str(names[key])), holds=holds[key], decides=decides[key])
        for key in most
    ], len(totals)


def _by(status: Status, column: str) -> Counter[int]:
    rows = Task.objects.filter(status=status).order_by().values_list(column)
    return Counter(dict(rows.annotate(n=Count("*"))))


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_SHOWN else f"{name[: _NAME_SHOWN - 1]}…"
