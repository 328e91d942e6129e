"""The one function that changes a task, for people and for the worker alike.

It locks the row, checks the action against what the task is *now*, and writes the change, its place in the history, what is
told of it and the jobs of the new deadlines in one transaction. Whatever no longer applies changes nothing
and says so, which is why a job that comes late or twice is harmless.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from django.db import transaction

from workspaces.tasks import clock, deadlines, effects, entries, notices, transfers
from workspaces.tasks.actors import Actor
from workspaces.tasks.change import Change, Details
from workspaces.tasks.decisions import Refusal, decide
from workspaces.tasks.events import LogEvent
from workspaces.tasks.exceptions import InvalidTask, UnknownTask
from workspaces.tasks.facts import Facts
from workspaces.tasks.models import Agent, Task, TaskEvent, Transfer
from workspaces.tasks.outcomes import Outcome, Refused
from workspaces.tasks.patience import impatient
from workspaces.tasks.states import Action, Reason, Status, Template
from workspaces.tasks.transition import ENTERED, Party
from workspaces.tasks.transitions import TRANSITIONS

log = logging.getLogger(__name__)

_NOTHING = Details()
_ABOUT_ENTRIES = {
    row.action
    for row in TRANSITIONS
    if row.when is ENTERED or Party.ENTRANTS in row.tells
}
"""The actions that ask what was handed in; for the others it is not looked up."""

_CHANGED = [
    field.attname
    for field in Task._meta.concrete_fields
    if not field.primary_key
    and field.name not in {"title", "description", "checklist", "template", "publisher"}
]
"""What an action may change: a long description is not written again with each."""


def apply(
    task_id: int, action: Action, *, by: Actor, details: Details = _NOTHING
) -> Outcome:
    """Do ``action`` to the task, if it applies; otherwise change nothing, and say why in the outcome.

    Raises :class:`~workspaces.tasks.exceptions.UnknownTask`, and for the worker ``TaskBusy``: people wait for whoever is
    changing the task, the worker has others to see to.
    """
    alone = impatient(task_id) if by.agent is None else transaction.atomic()
    try:
        with alone:
            task = _row(task_id)
            change = _carry_out(task, action, by, details)
    except Refused as refused:
        return _refused(task, action, by, refused)
    return _applied(change)


def publish(task: Task, *, by: Actor) -> None:
    """Store a new task, whose values have been checked: open to be taken or entered, with its deadline watched.

    Raises :class:`~workspaces.tasks.exceptions.InvalidTask` where its publisher may not act.
    """
    try:
        with transaction.atomic():
            change = _carry_out(task, Action.PUBLISH, by, _NOTHING)
    except Refused as refused:
        raise InvalidTask(f"publisher: {refused.reason}") from None
    _applied(change)


def watch(task_id: int) -> None:
    """Give each live deadline of the task its job, where it has none.

    Raises :class:`~workspaces.tasks.exceptions.UnknownTask` and ``TaskBusy``.
    """
    with impatient(task_id):
        deadlines.watch([locked(task_id)])


def locked(task_id: int) -> Task:
    """The task as it is now, locked until the transaction ends, with all of its deadlines.

    Raises :class:`~workspaces.tasks.exceptions.UnknownTask`.
    """
    task = _row(task_id)
    _pending_transfer(task)
    return task


def _row(task_id: int) -> Task:
    # The row alone: what a join reads may be from before the wait for the lock.
    task = Task.objects.select_for_update().filter(pk=task_id).first()
    if task is None:
        raise UnknownTask(f"there is no task {task_id}")
    return task


def _carry_out(task: Task, action: Action, by: Actor, details: Details) -> Change:
    by, details = _with_people(task, by, details)
    transfer = _pending_transfer(task)
    facts = _facts(task)
    undecided = entries.undecided(task) if action in _ABOUT_ENTRIES else []
    row = decide(
        action,
        replace(facts, entries=len(undecided)),
        by.roles(task, transfer),
    )
    if isinstance(row, Refusal):
        raise Refused(row.code, row.reason, due=row.due)
    change = Change(
        action=action,
        row=row,
        task=task,
        by=by,
        now=facts.now,
        details=details,
        transfer=transfer,
        former=task.holder,
        entries=undecided,
    )
    effects.carry_out(change)
    _write(change)
    return change


def _with_people(task: Task, by: Actor, details: Details) -> tuple[Actor, Details]:
    """Everybody concerned as they are now: an agent may have been disabled, or be gone, since whoever asks has read it."""
    acting = by.agent.pk if by.agent is not None else None
    to = details.to.pk if details.to is not None else None
    keys = {task.publisher_id, task.holder_id, acting, to} - {None}
    people = Agent.objects.select_related("user", "owner").in_bulk(keys)
    if not keys <= people.keys():
        raise Refused(Reason.AGENT_REFUSED, "an agent that is named is there no more")
    task.publisher = people[task.publisher_id]
    task.holder = people[task.holder_id] if task.holder_id is not None else None
    if to is not None:
        details = replace(details, to=people[to])
    if acting is None:
        return by, details
    if not people[acting].may_act:
        raise Refused(Reason.AGENT_REFUSED, f"{people[acting]} is disabled")
    return replace(by, agent=people[acting]), details


def _pending_transfer(task: Task) -> Transfer | None:
    """The transfer of a locked task, whose end becomes one of its deadlines."""
    transfer = transfers.pending(task) if task.status == Status.HELD else None
    task.transfer_until = transfer.expires_at if transfer else None
    return transfer


def _facts(task: Task) -> Facts:
    return Facts(
        now=clock.now(),
        status=Status(task.status) if task.status else None,
        template=Template(task.template),
        deadlines=deadlines.times(task),
        misses=task.misses,
        final_miss=task.final_miss,
        returns=task.returns,
        returns_allowed=task.returns_allowed,
    )


def _write(change: Change) -> None:
    """The row, its place in the history, what is told, and the jobs of the deadlines: all of it or nothing."""
    task = change.task
    task.updated_at = change.now
    task.save(update_fields=_CHANGED if task.pk else None)
    TaskEvent.objects.create(
        task=task,
        action=change.action.value,
        source=change.row.source,
        target=change.row.target,
        actor=str(change.by),
        data=change.data,
        created_at=change.now,
    )
    notices.tell(change)
    deadlines.watch([task])


def _applied(change: Change) -> Outcome:
    facts = {
        "task_id": change.task.pk,
        "action": change.action.value,
        "status": change.task.status,
        "by": str(change.by),
    }
    # The caller's own transaction may still be rolled back.
    transaction.on_commit(partial(log.info, LogEvent.APPLIED, extra=facts), robust=True)
    return Outcome(
        ok=True,
        task_id=change.task.pk,
        action=change.action,
        status=Status(change.task.status),
        created_id=change.created_id,
    )


def _refused(task: Task, action: Action, by: Actor, refused: Refused) -> Outcome:
    log.info(
        LogEvent.REFUSED,
        extra={
            "task_id": task.pk,
            "action": action.value,
            "by": str(by),
            "reason": refused.reason,
        },
    )
    return Outcome(
        ok=False,
        task_id=task.pk,
        action=action,
        status=Status(task.status),
        reason=refused.reason,
        code=refused.code,
        due=refused.due,
    )
