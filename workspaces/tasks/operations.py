"""What operators do to tasks in their publishers' place; each is audited with what it does."""

from __future__ import annotations

import time
from collections.abc import Iterable

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import QuerySet

from jobs.action_result import Result, Skip
from jobs.redaction import redact
from notify import audit
from workspaces.tasks import actions
from workspaces.tasks.actors import Actor, operating
from workspaces.tasks.exceptions import UnknownTask
from workspaces.tasks.models import Task
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Action, Status
from workspaces.tasks.transitions import TRANSITIONS

OPERATIONS = (
    Action.ACCEPT,
    Action.PICK_WINNER,
    Action.REJECT,
    Action.CANCEL,
    Action.REOPEN,
)

_PARTICIPLES = {Action.CANCEL: "cancelled", Action.REOPEN: "reopened"}


def applicable(task: Task) -> list[Action]:
    """The operations that a task of this template and status has; a deadline may still refuse one."""
    rows = [row for row in TRANSITIONS if row.template in (None, task.template)]
    found = {row.action for row in rows if row.source == task.status}
    return [action for action in OPERATIONS if action in found]


def operate(
    task_id: int,
    action: Action,
    *,
    user: AbstractBaseUser,
    reason: str = "",
    submission: int | None = None,
) -> Outcome:
    """Do one of the ``OPERATIONS``; whoever calls this has checked that the user may.

    ``submission`` is the id of a contest's winner; a task is reopened without a reason. Raises
    :class:`~workspaces.tasks.exceptions.InvalidTask` and :class:`~workspaces.tasks.exceptions.UnknownTask`.
    """
    return _operate(
        task_id, action, by=operating(user), reason=reason, submission=submission
    )


def operate_all(
    tasks: QuerySet[Task],
    action: Action,
    *,
    user: AbstractBaseUser,
    reason: str = "",
    time_limit: float,
) -> Result:
    """Cancel or reopen each of these, in a transaction of its own; those to which it does not apply are skipped.

    Past ``time_limit`` seconds the rest is left for the next call. Raises InvalidTask.
    """
    until = time.monotonic() + time_limit
    sources = _sources(action)
    result = Result(participle=_PARTICIPLES[action])
    # Looked at beforehand, or the same ones would use up the time of each call.
    others = tasks.exclude(status__in=sources).values_list("pk", flat=True)
    why = f"{action} applies to a task that is {' or '.join(sources)}"
    result.skipped += [Skip(target=str(key), reason=why) for key in others]
    by = operating(user)
    keys = tasks.filter(status__in=sources).order_by("pk").values_list("pk", flat=True)
    for key in list(keys):
        if time.monotonic() >= until:
            result.unfinished = True
            break
        try:
            outcome = _operate(key, action, by=by, reason=reason)
        except UnknownTask as gone:
            result.skipped.append(Skip(target=str(key), reason=str(gone)))
            continue
        if outcome.ok:
            result.done.append(str(key))
        else:
            result.skipped.append(Skip(target=str(key), reason=outcome.reason))
    return result


def record(actor: str, action: str, *, task_id: int, **facts: str | int | None) -> None:
    """Audit what an operator did to a task, in the transaction that did it; facts that there are not are left out."""
    kept = {
        name: redact(fact) if isinstance(fact, str) else fact
        for name, fact in facts.items()
        if fact
    }
    audit.record(actor, f"task.{action}", target=f"task:{task_id}", data=kept)


def _sources(action: Action) -> list[Status]:
    found: Iterable[Status] = (
        row.source
        for row in TRANSITIONS
        if row.action is action and row.source is not None
    )
    return list(dict.fromkeys(found))


def _operate(
    task_id: int,
    action: Action,
    *,
    by: Actor,
    reason: str = "",
    submission: int | None = None,
) -> Outcome:
    with transaction.atomic():
        outcome = _apply(task_id, action, by=by, reason=reason, submission=submission)
        if outcome.ok:
            record(
                str(by.agent),
                action.value,
                task_id=task_id,
                status=outcome.status.value,
                reason=reason,
                submission_id=submission,
            )
    return outcome


def _apply(
    task_id: int, action: Action, *, by: Actor, reason: str, submission: int | None
) -> Outcome:
    match action:
        case Action.ACCEPT:
            return actions.accept(task_id, by=by, reason=reason)
        case Action.REJECT:
            return actions.reject(task_id, by=by, reason=reason)
        case Action.CANCEL:
            return actions.cancel(task_id, by=by, reason=reason)
        case Action.REOPEN:
            return actions.reopen(task_id, by=by)
        case Action.PICK_WINNER if submission is not None:
            return actions.pick_winner(
                task_id, by=by, submission=submission, reason=reason
            )
    raise ValueError(f"{action} is not for operators, or lacks a submission")
