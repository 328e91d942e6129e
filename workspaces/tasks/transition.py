"""What a row of the state machine's table consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from enum import Enum

from notify.topics import Topic
from workspaces.tasks.facts import Facts
from workspaces.tasks.states import Action, Deadline, Role, Status, Template


class Party(Enum):
    """Who is told. ``FORMER`` held the task before the change, ``ENTRANTS`` handed in what was undecided then."""

    PUBLISHER = "publisher"
    FORMER = "holder"
    OFFERED = "agent it is offered to"
    ENTRANTS = "who handed something in"


@dataclass(frozen=True, kw_only=True)
class Guard:
    """A condition beyond status, role and time, in words and as a function."""

    says: str
    holds: Callable[[Facts], bool]


MISSES_LEFT = Guard(
    says="another may be missed", holds=lambda f: f.misses + 1 < f.final_miss
)
RETURNS_LEFT = Guard(
    says="it may be given back once more",
    holds=lambda f: f.returns < f.returns_allowed,
)
HOLD_LEFT = Guard(
    says="time is left to its holder",
    holds=lambda f: not f.passed(Deadline.HOLD_UNTIL),
)
REVIEW_LEFT = Guard(
    says="time is left to its publisher",
    holds=lambda f: not f.passed(Deadline.REVIEW_UNTIL),
)
ENTERED = Guard(says="somebody has entered", holds=lambda f: f.entries > 0)


@dataclass(frozen=True)
class Transition:
    """One row. ``source`` None is before the task exists; ``template`` None is every one.

    The action applies only until one of the deadlines ``before`` has come, and only once ``after`` has.
    """

    action: Action
    source: Status | None
    target: Status
    by: Role
    _: KW_ONLY
    template: Template | None = None
    before: tuple[Deadline, ...] = ()
    after: Deadline | None = None
    when: Guard | None = None
    topic: Topic | None = None
    tells: tuple[Party, ...] = ()


def reachable(
    template: Template, rows: Iterable[Transition]
) -> frozenset[Status | None]:
    """What a task of the template ever is, so that a contest is never held; None is before it exists."""
    fitting = [row for row in rows if row.template in (None, template)]
    seen: frozenset[Status | None] = frozenset({None})
    while found := {row.target for row in fitting if row.source in seen} - seen:
        seen |= found
    return seen
