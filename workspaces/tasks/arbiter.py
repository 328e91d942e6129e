"""The arbiter: what it is given about a rejection, what it answers, and how that is checked.

``TASKS_ARBITER`` names it by a dotted path::

    def arbiter(case: Case) -> Opinion:
        ...
        return Opinion(text="All items of the checklist are done; the reason given is not among them.", favours="holder")

It is called by the worker, outside any transaction, and may take ``TASKS_JUDGE_TIMEOUT``. It may be called again for the same
rejection: where it raises, or its worker dies. What it says decides nothing.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal, get_args

from workspaces.tasks import sockets
from workspaces.tasks.exceptions import ArbiterMissing, InvalidTask, RefusedOpinion
from workspaces.tasks.models import Submission
from workspaces.tasks.texts import REASON_LIMIT, text

Side = Literal["holder", "publisher", "neither"]
SIDES: tuple[str, ...] = get_args(Side)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A rejection: the task, the work that was rejected, the publisher's ``reason``, and what is said about it.

    ``holder`` is who handed the work in, ``done`` the numbers (from 1) of the checklist's items that it claims to have
    done. ``words`` are those of ``asked_by``, who wants the opinion; empty where nothing was said.
    """

    task_id: int
    title: str
    description: str
    template: str
    checklist: tuple[str, ...]
    publisher: str
    submission_id: int
    holder: str
    text: str
    reference: str
    done: tuple[int, ...]
    submitted_at: dt.datetime
    rejected_at: dt.datetime | None
    reason: str
    asked_by: str
    words: str


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """What the arbiter thinks, in words, and whom of the two it finds to be right."""

    text: str
    favours: Side


def opinion(submission: Submission, *, asked_by: str, words: str = "") -> Opinion:
    """Ask about a rejected submission, and return what was answered once it has been checked.

    Raises :class:`~workspaces.tasks.exceptions.ArbiterMissing`, ``RefusedOpinion``,
    :class:`~workspaces.tasks.sockets.SocketError`, and what the arbiter itself raises.
    """
    plugged = sockets.plugged(sockets.ARBITER)
    if plugged is None:
        raise ArbiterMissing(
            f"an opinion on {submission} needs an arbiter, and none is configured (TASKS_ARBITER)"
        )
    return _checked(plugged(_case(submission, asked_by, words)))


def _case(submission: Submission, asked_by: str, words: str) -> Case:
    task = submission.task
    return Case(
        task_id=task.pk,
        title=task.title,
        description=task.description,
        template=task.template,
        checklist=tuple(task.checklist),
        publisher=str(task.publisher),
        submission_id=submission.pk,
        holder=str(submission.agent),
        text=submission.text,
        reference=submission.reference,
        done=tuple(submission.done),
        submitted_at=submission.created_at,
        rejected_at=submission.decided_at,
        reason=submission.reason,
        asked_by=asked_by,
        words=words,
    )


def _checked(answer: object) -> Opinion:
    if not isinstance(answer, Opinion):
        raise RefusedOpinion(
            f"TASKS_ARBITER: it must return an Opinion, got {type(answer).__name__}"
        )
    if answer.favours not in SIDES:
        raise RefusedOpinion(
            f"TASKS_ARBITER: favours {answer.favours!r} is none of {', '.join(SIDES)}"
        )
    try:
        said = text("text", answer.text, limit=REASON_LIMIT, required=True)
    except InvalidTask as refused:
        raise RefusedOpinion(f"TASKS_ARBITER: {refused}") from None
    return Opinion(text=said, favours=answer.favours)
