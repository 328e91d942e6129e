"""What people and agents do to tasks, as functions. Each checks what it is given and asks the machine.

All but :func:`publish` return an :class:`~workspaces.tasks.outcomes.Outcome`: an action that does not apply (any more),
or is not this actor's to do, changes nothing and says why there. They raise
:class:`~workspaces.tasks.exceptions.UnknownTask`, and :class:`~workspaces.tasks.exceptions.InvalidTask` for a value that is
refused, with its name.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from django.conf import settings

from workspaces.models import Workspace, Worktree
from workspaces.tasks import machine, texts
from workspaces.tasks.actors import Actor
from workspaces.tasks.change import Details
from workspaces.tasks.exceptions import InvalidTask, UnknownTask
from workspaces.tasks.models import Agent, Task
from workspaces.tasks.models.records import REFERENCE_MAX_LENGTH
from workspaces.tasks.models.task import TITLE_MAX_LENGTH
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Action, Template
from workspaces.tasks.texts import REASON_LIMIT, TEXT_LIMIT


def publish(
    *,
    by: Actor,
    title: str,
    template: Template | str = Template.DIRECT,
    description: str = "",
    workspace: Workspace | None = None,
    checklist: Iterable[str] = (),
    open_for: dt.timedelta | None = None,
    hold_for: dt.timedelta | None = None,
    checkpoint_every: dt.timedelta | None = None,
    review_for: dt.timedelta | None = None,
    final_miss: int | None = None,
    returns_allowed: int | None = None,
) -> Task:
    """Publish a task and return it.

    ``open_for`` is how long it can be taken, or how long a contest takes entries; ``hold_for`` how long an agent may hold
    it; ``checkpoint_every`` how often the holder has to report (0: never), of which missing the ``final_miss``-th in a row
    costs the task; ``review_for`` how long its publisher may decide. It is offered again ``returns_allowed`` times when it
    is given back. None is what the settings ``TASKS_…`` say; a contest has neither holder nor checkpoints.
    """
    if by.agent is None:
        raise InvalidTask("publisher: the worker publishes nothing")
    if template not in Template.values:
        raise InvalidTask(
            f"template: {template!r} is neither of {', '.join(Template.values)}"
        )
    direct = template == Template.DIRECT
    for_holder = {
        "hold_for": hold_for,
        "checkpoint_every": checkpoint_every,
        "final_miss": final_miss,
        "returns_allowed": returns_allowed,
    }
    for field, value in for_holder.items():
        if not direct and value is not None:
            raise InvalidTask(f"{field}: a contest has no holder, so it has none")
    every = _duration("checkpoint_every", checkpoint_every, zero=True)
    task = Task(
        title=texts.line("title", title, limit=TITLE_MAX_LENGTH, required=True),
        description=texts.text("description", description, limit=TEXT_LIMIT),
        template=Template(template),
        publisher=by.agent,
        workspace=workspace,
        checklist=texts.checklist(checklist),
        open_for=_duration("open_for", open_for),
        hold_for=_duration("hold_for", hold_for) if direct else None,
        checkpoint_every=every if direct and every else None,
        review_for=_duration("review_for", review_for),
        final_miss=_count("final_miss", final_miss, least=1),
        returns_allowed=_count("returns_allowed", returns_allowed, least=0),
    )
    machine.publish(task, by=by)
    return task


def take(task_id: int, *, by: Actor, worktree: Worktree | None = None) -> Outcome:
    """Hold the task, working in ``worktree``, which the agent must hold already."""
    details = Details(worktree=worktree)
    return machine.apply(task_id, Action.TAKE, by=by, details=details)


def use_worktree(task_id: int, *, by: Actor, worktree: Worktree | None) -> Outcome:
    """Work in this worktree from now on, which its holder must hold; None lets go of the one that was used."""
    details = Details(worktree=worktree)
    return machine.apply(task_id, Action.USE_WORKTREE, by=by, details=details)


def checkpoint(task_id: int, *, by: Actor, note: str = "") -> Outcome:
    """Report how it goes; the next report is due a period later."""
    details = Details(text=texts.text("note", note, limit=TEXT_LIMIT))
    return machine.apply(task_id, Action.CHECKPOINT, by=by, details=details)


def submit(
    task_id: int,
    *,
    by: Actor,
    text: str = "",
    reference: str = "",
    done: Iterable[int] = (),
) -> Outcome:
    """Hand in work: to be reviewed, or as the agent's entry to a contest, in the place of an earlier one.

    ``reference`` says where it is (a branch, a commit, a URL), ``done`` which items of the checklist are done, from 1.
    """
    checklist = _checklist(task_id)
    details = Details(
        text=texts.text("text", text, limit=TEXT_LIMIT),
        reference=texts.line("reference", reference, limit=REFERENCE_MAX_LENGTH),
        done=texts.done(done, checklist),
    )
    if not details.text and not details.reference:
        raise InvalidTask("text: say what is handed in, or give a reference to it")
    return machine.apply(task_id, Action.SUBMIT, by=by, details=details)


def give_back(task_id: int, *, by: Actor, reason: str = "") -> Outcome:
    """Let go of the task before its time is over; it counts as given back."""
    return _with_reason(task_id, Action.GIVE_BACK, by, reason)


def accept(task_id: int, *, by: Actor, reason: str = "") -> Outcome:
    """Accept what the holder handed in."""
    return _with_reason(task_id, Action.ACCEPT, by, reason)


def reject(task_id: int, *, by: Actor, reason: str) -> Outcome:
    """Reject what was handed in; the holder goes on where time is left. Of a contest it rejects every entry."""
    return _with_reason(task_id, Action.REJECT, by, reason, required=True)


def pick_winner(
    task_id: int, *, by: Actor, submission: int, reason: str = ""
) -> Outcome:
    """Choose the winner of a contest in review by its submission's id."""
    details = Details(submission=submission, reason=_reason(reason))
    return machine.apply(task_id, Action.PICK_WINNER, by=by, details=details)


def cancel(task_id: int, *, by: Actor, reason: str = "") -> Outcome:
    """Withdraw the task."""
    return _with_reason(task_id, Action.CANCEL, by, reason)


def reopen(task_id: int, *, by: Actor, open_for: dt.timedelta | None = None) -> Outcome:
    """Offer a task again that came to nothing, for as long as before or for ``open_for``."""
    if open_for is not None:
        texts.duration("open_for", open_for)
    details = Details(open_for=open_for)
    return machine.apply(task_id, Action.REOPEN, by=by, details=details)


def offer_transfer(task_id: int, *, by: Actor, to: Agent, note: str = "") -> Outcome:
    """Offer to hand the task over to another agent, who may accept until ``TASKS_TRANSFER_FOR`` is over."""
    details = Details(to=to, text=texts.text("note", note, limit=REASON_LIMIT))
    return machine.apply(task_id, Action.OFFER_TRANSFER, by=by, details=details)


def accept_transfer(task_id: int, *, by: Actor) -> Outcome:
    """Hold the task in the place of who offered it, with the time that is left and the worktree."""
    return machine.apply(task_id, Action.ACCEPT_TRANSFER, by=by)


def decline_transfer(task_id: int, *, by: Actor) -> Outcome:
    """Leave the task with who offered it."""
    return machine.apply(task_id, Action.DECLINE_TRANSFER, by=by)


def withdraw_transfer(task_id: int, *, by: Actor) -> Outcome:
    """Take the holder's own offer back."""
    return machine.apply(task_id, Action.WITHDRAW_TRANSFER, by=by)


def _with_reason(
    task_id: int, action: Action, by: Actor, reason: str, *, required: bool = False
) -> Outcome:
    details = Details(reason=_reason(reason, required=required))
    return machine.apply(task_id, action, by=by, details=details)


def _reason(reason: str, *, required: bool = False) -> str:
    return texts.text("reason", reason, limit=REASON_LIMIT, required=required)


def _checklist(task_id: int) -> list[str]:
    found = Task.objects.filter(pk=task_id).values_list("checklist", flat=True).first()
    if found is None:
        raise UnknownTask(f"there is no task {task_id}")
    return list(found)


def _duration(
    field: str, value: dt.timedelta | None, *, zero: bool = False
) -> dt.timedelta:
    default: dt.timedelta = getattr(settings, f"TASKS_{field.upper()}")
    return texts.duration(field, default if value is None else value, zero=zero)


def _count(field: str, value: int | None, *, least: int) -> int:
    default: int = getattr(settings, f"TASKS_{field.upper()}")
    return texts.count(field, default if value is None else value, least=least)
