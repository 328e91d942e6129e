"""The deadlines that are watched, and what the worker does when each has come: taken from the table of transitions."""

from __future__ import annotations

from dataclasses import dataclass

from workspaces.tasks.states import Action, Deadline, Role, Status, Template
from workspaces.tasks.transitions import TRANSITIONS


@dataclass(frozen=True, kw_only=True)
class Watch:
    """A deadline of a status, and the action of the worker (so the job's type) that it leads to."""

    action: Action
    deadline: Deadline
    status: Status
    template: Template | None


WATCHES: tuple[Watch, ...] = tuple(
    {
        Watch(
            action=row.action,
            deadline=row.after,
            status=row.source,
            template=row.template,
        ): None
        for row in TRANSITIONS
        if row.by is Role.WORKER and row.after is not None and row.source is not None
    }
)
"""What jobs are there for, in the order of the table."""

WORKER_ACTIONS: tuple[Action, ...] = tuple(dict.fromkeys(w.action for w in WATCHES))
"""The eight types of deadline jobs."""
