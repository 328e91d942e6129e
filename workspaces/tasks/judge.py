"""The judge of contests: what it is given, what it answers, and how that is checked.

``TASKS_CONTEST_JUDGE`` names it by a dotted path::

    def judge(task: ContestTask, checklist: Sequence[str], entries: Sequence[Entry]) -> Verdict:
        ...
        return Verdict(winner=entries[0].id, reasons="The only one that passes the tests.")

It is called by the worker, outside any transaction, when the publisher's time to review is over, and may take
``TASKS_JUDGE_TIMEOUT``: what it answers later is not applied. It may be called again for the same contest: where it
raises, or its worker dies.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.exceptions import LeaseLost
from jobs.outcomes import describe
from workspaces.tasks import entries, sockets
from workspaces.tasks.exceptions import (
    InvalidTask,
    JudgeError,
    JudgeMissing,
    RefusedVerdict,
)
from workspaces.tasks.models import Submission, Task
from workspaces.tasks.texts import REASON_LIMIT, text


@dataclass(frozen=True, kw_only=True)
class ContestTask:
    """The contest as a judge sees it. ``closed_at`` is when its entries were to be in."""

    id: int
    title: str
    description: str
    closed_at: dt.datetime | None


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What an agent handed in, in time. ``done`` are the numbers (from 1) of the checklist's items it claims to have done."""

    id: int
    agent: str
    text: str
    reference: str
    done: tuple[int, ...]
    submitted_at: dt.datetime


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The id of the entry that wins, and why, in words."""

    winner: int
    reasons: str


def judge(task: Task) -> Verdict:
    """Have a contest judged, and return what was answered once it has been checked.

    Raises :class:`~workspaces.tasks.exceptions.JudgeMissing`, ``JudgeError``, ``RefusedVerdict``,
    :class:`~workspaces.tasks.sockets.SocketError`, and ``JudgeError`` from what the judge itself raises.
    """
    plugged = sockets.plugged(sockets.CONTEST_JUDGE)
    if plugged is None:
        raise JudgeMissing(
            f"review_auto_accept for a contest needs a judge, and none is configured (TASKS_CONTEST_JUDGE), id: {task.pk}; "
            "its publisher may still pick a winner"
        )
    given = [_entry(row) for row in entries.pending(task) if _in_time(row, task)]
    if not given:
        raise JudgeError(
            f"review_auto_accept for a contest needs an entry that came in time, and there is none, id: {task.pk}; "
            "its publisher may reject or cancel it"
        )
    # Taken before the judge has had them in its hands.
    ids = [entry.id for entry in given]
    contest = ContestTask(
        id=task.pk,
        title=task.title,
        description=task.description,
        closed_at=task.open_until,
    )
    try:
        answer = plugged(contest, tuple(task.checklist), tuple(given))
    except LeaseLost:
        raise
    except Exception as error:
        # What it raises says nothing to the queue: a Snooze or Permanent of the judge's own is a failure like any other.
        raise JudgeError(f"TASKS_CONTEST_JUDGE: it raised {describe(error)}") from error
    return _checked(answer, ids)


def _in_time(row: Submission, task: Task) -> bool:
    return task.open_until is None or row.created_at < task.open_until


def _entry(row: Submission) -> Entry:
    return Entry(
        id=row.pk,
        agent=str(row.agent),
        text=row.text,
        reference=row.reference,
        done=tuple(row.done),
        submitted_at=row.created_at,
    )


def _checked(answer: object, ids: Sequence[int]) -> Verdict:
    if not isinstance(answer, Verdict):
        raise RefusedVerdict(
            f"TASKS_CONTEST_JUDGE: it must return a Verdict, got {type(answer).__name__}"
        )
    if type(answer.winner) is not int or answer.winner not in ids:
        raise RefusedVerdict(
            f"TASKS_CONTEST_JUDGE: winner {answer.winner!r} is no entry of this contest; its entries are {ids}"
        )
    try:
        reasons = text("reasons", answer.reasons, limit=REASON_LIMIT, required=True)
    except InvalidTask as refused:
        raise RefusedVerdict(f"TASKS_CONTEST_JUDGE: {refused}") from None
    return Verdict(winner=answer.winner, reasons=reasons)
