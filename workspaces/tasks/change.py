"""One action being carried out: what it is about, what was given with it, and what it leaves behind."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from workspaces.models import Worktree
from workspaces.tasks.actors import Actor
from workspaces.tasks.models import Agent, Submission, Task, Transfer
from workspaces.tasks.states import Action, Status
from workspaces.tasks.transition import Transition


@dataclass(frozen=True, kw_only=True)
class Details:
    """What comes with an action; which of it counts depends on the action. The texts have been checked.

    ``submission`` is the id of a contest's winner, ``reason`` why (also of a rejection and a cancellation). ``to`` is
    whom a transfer is offered to, ``open_for`` replaces the time that a reopened task is open.
    """

    text: str = ""
    reference: str = ""
    done: tuple[int, ...] = ()
    reason: str = ""
    to: Agent | None = None
    submission: int | None = None
    worktree: Worktree | None = None
    open_for: dt.timedelta | None = None


@dataclass(kw_only=True)
class Change:
    """``task`` is locked and is changed in place; ``former`` held it before, ``entries`` was undecided before.

    ``data`` goes into the history and, with ``created_id``, to whoever asked.
    """

    action: Action
    row: Transition
    task: Task
    by: Actor
    now: dt.datetime
    details: Details
    transfer: Transfer | None = None
    former: Agent | None = None
    entries: list[Submission] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    created_id: int | None = None

    @property
    def agent(self) -> Agent:
        """Who does it, where that is not the worker."""
        if self.by.agent is None:
            raise ValueError(f"{self.action} is not for the worker")
        return self.by.agent

    @property
    def leaves(self) -> bool:
        """Whether the task has another status afterwards."""
        return self.row.source != self.row.target

    @property
    def target(self) -> Status:
        return self.row.target
