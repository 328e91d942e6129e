"""What a decision is made from: a task as it is at one moment, as plain values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from workspaces.tasks.states import Deadline, Status, Template


@dataclass(frozen=True, kw_only=True)
class Facts:
    """``status`` None is before the task exists. ``entries`` counts what was handed in and is not decided."""

    now: dt.datetime
    status: Status | None
    template: Template
    deadlines: Mapping[Deadline, dt.datetime | None]
    misses: int = 0
    final_miss: int = 1
    returns: int = 0
    returns_allowed: int = 0
    entries: int = 0

    @property
    def is_lost(self) -> bool:
        """Whether the holder's time is over, or a checkpoint that was the last to be missed."""
        final = self.misses + 1 >= self.final_miss
        return self.passed(Deadline.HOLD_UNTIL) or (
            final and self.passed(Deadline.CHECKPOINT_DUE_AT)
        )

    def passed(self, deadline: Deadline) -> bool:
        """Whether that time has come; one that is not set never does."""
        at = self.deadlines.get(deadline)
        return at is not None and at <= self.now
