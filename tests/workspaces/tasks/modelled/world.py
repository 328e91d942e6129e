"""What surrounds the tasks that the model knows: who there is, who is told, and what is kept of them; none of the product's modules."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.workspaces.tasks.modelled.expected import Expected

HOUR = dt.timedelta(hours=1)
CHECKPOINT_LEAD = HOUR / 4
REVIEW_LEAD = HOUR
TRANSFER_FOR = HOUR / 2
WORKER = "worker"
OPERATOR = "olga"
"""Acts in the publisher's place, and under a name that says so."""

Time = dt.datetime | None


class No(Exception):
    """The action does not apply. ``due`` is when it will, where it came early."""

    def __init__(self, code: str, due: Time = None) -> None:
        super().__init__(code)
        self.code, self.due = code, due


def need(condition: object, code: str, due: Time = None) -> None:
    if not condition:
        raise No(code, due)


@dataclass
class Hold:
    """Of a worktree; a later one has another number."""

    by: str | None = None
    number: int = 0


@dataclass
class World:
    """Who there is and who is told for whom; and the worktrees, by name."""

    owners: dict[str, str | None]
    admins: set[str]
    disabled: set[str] = field(default_factory=set)
    inactive: set[str] = field(default_factory=set)
    worktrees: dict[str, Hold] = field(default_factory=dict)
    tasks: list[Expected] = field(default_factory=list)

    def may_act(self, name: str) -> bool:
        return name not in self.disabled | self.inactive

    def people(self, name: str) -> set[str]:
        person = self.owners.get(name, name)
        told = person is not None and person not in self.inactive
        return {str(person)} if told else self.admins


@dataclass
class Entry:
    id: int
    agent: str
    at: dt.datetime
    decision: str = "pending"


@dataclass
class Offer:
    id: int
    of: str
    to: str
    until: dt.datetime
    status: str = "pending"


@dataclass(frozen=True)
class Done:
    """One line of the history, and the topics under which it should have been told, and to whom."""

    action: str
    source: str | None
    target: str
    by: str
    at: dt.datetime
    tells: tuple[tuple[str, frozenset[str]], ...]
