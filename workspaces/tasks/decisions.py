"""Whether an action applies, and by which row of the table: pure, from plain values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from workspaces.tasks.facts import Facts
from workspaces.tasks.states import Action, Deadline, Reason, Role, Status
from workspaces.tasks.transition import Transition, reachable
from workspaces.tasks.transitions import TRANSITIONS

_WHO = {
    Role.PUBLISHER: "its publisher",
    Role.HOLDER: "its holder",
    Role.OFFERED: "the agent to whom a transfer is offered",
    Role.ANYONE: "an agent",
    Role.CONTESTANT: "an agent other than its publisher",
    Role.WORKER: "the worker",
}


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why an action does not apply. ``due`` is the time from which it may, where it is only early."""

    code: Reason
    reason: str
    due: dt.datetime | None = None


def decide(
    action: Action, facts: Facts, roles: Collection[Role]
) -> Transition | Refusal:
    """The row by which ``action`` applies, done by somebody who is ``roles`` to the task; else why it does not."""
    rows = [row for row in TRANSITIONS if row.action is action]
    rows = [row for row in rows if row.template in (None, facts.template)]
    if not rows:
        return Refusal(
            code=Reason.WRONG_TEMPLATE,
            reason=f"{action} is nothing that is done to a {facts.template} task",
        )
    in_status = [row for row in rows if row.source == facts.status]
    if not in_status:
        return Refusal(code=Reason.WRONG_STATUS, reason=_status(action, rows, facts))
    for_them = [row for row in in_status if row.by in roles]
    if not for_them:
        whose = " or ".join(dict.fromkeys(_WHO[row.by] for row in in_status))
        return Refusal(code=Reason.NOT_YOURS, reason=f"{action} is for {whose} to do")
    return _in_time(action, facts, for_them)


def _status(action: Action, rows: Sequence[Transition], facts: Facts) -> str:
    known = reachable(facts.template, TRANSITIONS)
    sources = (row.source for row in rows if row.source in known)
    wanted = dict.fromkeys(source for source in sources if source)
    status = Status(facts.status).value if facts.status else "not published"
    if not wanted:
        return f"{action} does not apply: the task is {status}"
    return f"{action} applies to a task that is {' or '.join(wanted)}, and this one is {status}"


def _in_time(
    action: Action, facts: Facts, rows: Sequence[Transition]
) -> Transition | Refusal:
    for row in rows:
        if row.after is not None and not facts.passed(row.after):
            return _early(action, row.after, facts)
        for deadline in row.before:
            if facts.passed(deadline):
                at = facts.deadlines[deadline]
                return Refusal(
                    code=Reason.TOO_LATE,
                    reason=f"too late to {action}: {deadline} was {at:%Y-%m-%d %H:%M:%S %Z}",
                )
            if deadline is Deadline.HOLD_UNTIL and facts.is_lost:
                at = facts.deadlines[Deadline.CHECKPOINT_DUE_AT]
                return Refusal(
                    code=Reason.TOO_LATE,
                    reason=f"too late to {action}: the checkpoint that was due {at:%Y-%m-%d %H:%M:%S %Z} was the last "
                    "that could be missed",
                )
        if row.when is None or row.when.holds(facts):
            return row
    raise AssertionError(f"no row of {action} is without a condition: {rows}")


def _early(action: Action, deadline: Deadline, facts: Facts) -> Refusal:
    at = facts.deadlines.get(deadline)
    if at is None:
        return Refusal(
            code=Reason.NOT_DUE, reason=f"{action} does not apply: no {deadline} is set"
        )
    return Refusal(
        code=Reason.NOT_DUE,
        reason=f"{action} is not due: {deadline} is {at:%Y-%m-%d %H:%M:%S %Z}",
        due=at,
    )
