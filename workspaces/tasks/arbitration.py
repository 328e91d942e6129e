"""Opinions on rejections: asked for by one of the two sides, given by the arbiter, told to both. They decide nothing."""

from __future__ import annotations

import logging
import uuid

from django.conf import settings
from django.db import transaction

from jobs.context import JobContext
from jobs.enqueue import enqueue_many
from jobs.exceptions import Permanent
from notify.dispatch import Event, dispatch
from workspaces.tasks import agents, arbiter, clock, notices, sockets, topics
from workspaces.tasks.actors import Actor
from workspaces.tasks.arbiter import Opinion
from workspaces.tasks.events import LogEvent
from workspaces.tasks.exceptions import (
    ArbiterMissing,
    NothingToArbitrate,
    UnknownTask,
)
from workspaces.tasks.job_types import (
    ARBITRATION_OPINION,
    OpinionPayload,
    opinion_job,
)
from workspaces.tasks.models import Submission, Task, TaskEvent
from workspaces.tasks.texts import REASON_LIMIT, text

log = logging.getLogger(__name__)

_ARBITER = "arbiter"
"""How the history names who gave an opinion."""


def ask(
    task_id: int, *, by: Actor, submission: int | None = None, words: str = ""
) -> uuid.UUID:
    """Have the arbiter asked about a rejection, and return the id of the job that does; where one waits, that one's.

    It is about the rejected ``submission``; None is the last one, of those that the actor handed in, or, for the
    publisher and for operators, of all. ``words`` is what the actor says about it. Raises
    :class:`~workspaces.tasks.exceptions.UnknownTask`, ``ArbiterMissing``, ``NothingToArbitrate``, and ``InvalidTask`` for words
    that are refused.
    """
    task = Task.objects.filter(pk=task_id).first()
    if task is None:
        raise UnknownTask(f"there is no task {task_id}")
    if not settings.TASKS_ARBITER:
        raise ArbiterMissing(
            "an opinion needs an arbiter, and none is configured (TASKS_ARBITER)"
        )
    words = text("words", words, limit=REASON_LIMIT)
    rejected = _rejected(task, by, submission)
    if _is_given(rejected):
        raise NothingToArbitrate(
            f"the arbiter has given its opinion on {rejected} already; it is in the history of {task}"
        )
    payload = OpinionPayload(submission_id=rejected.pk, asked_by=str(by), words=words)
    (job_id,) = enqueue_many([opinion_job(task.pk, payload)])
    return job_id


def _rejected(task: Task, by: Actor, wanted: int | None) -> Submission:
    """The rejected work that is meant, which must be this actor's to ask about."""
    rows = Submission.objects.filter(task=task, decision=Submission.Decision.REJECTED)
    if wanted is not None:
        rows = rows.filter(pk=wanted)
    newest = rows.order_by("-decided_at", "-pk")
    agent = by.agent
    if agent is not None and not agent.may_act:
        raise NothingToArbitrate(f"{agent} is disabled")
    if agent is not None and (by.operator or agent.pk == task.publisher_id):
        found = newest.first()
    else:
        found = newest.filter(agent=agent).first() if agent is not None else None
    if found is not None:
        return found
    if not newest.exists():
        which = "nothing" if wanted is None else f"no submission {wanted}"
        raise NothingToArbitrate(f"{which} of {task} was rejected")
    raise NothingToArbitrate(
        f"an opinion on a rejection is for the publisher of {task}, or who handed the work in, to ask for; {by} is neither"
    )


def give_opinion(payload: OpinionPayload, *, context: JobContext | None = None) -> None:
    """Ask the arbiter, keep what it says in the task's history, and tell both sides; once for each rejection.

    Raises Permanent where that work is not there, or not rejected, and what
    :func:`workspaces.tasks.arbiter.opinion` and :func:`workspaces.tasks.sockets.check_wanted` raise.
    """
    submission = (
        Submission.objects.select_related(
            "agent__user", "agent__owner", "task__publisher__user"
        )
        .filter(pk=payload.submission_id, decision=Submission.Decision.REJECTED)
        .first()
    )
    if submission is None:
        raise Permanent(f"there is no rejected submission {payload.submission_id}")
    if _is_given(submission):
        return
    said = arbiter.opinion(submission, asked_by=payload.asked_by, words=payload.words)
    sockets.check_wanted(sockets.ARBITER, context)
    with transaction.atomic():
        task = _locked(submission.task_id)
        # Another execution may have been quicker.
        if _is_given(submission):
            return
        _write(task, submission, said, payload)
    log.info(
        LogEvent.OPINION,
        extra={
            "task_id": task.pk,
            "submission_id": submission.pk,
            "favours": said.favours,
        },
    )


def _is_given(submission: Submission) -> bool:
    return TaskEvent.objects.filter(
        task_id=submission.task_id,
        action=ARBITRATION_OPINION,
        data__submission_id=submission.pk,
    ).exists()


def _locked(task_id: int) -> Task:
    Task.objects.select_for_update().get(pk=task_id)
    return Task.objects.with_people().get(pk=task_id)


def _write(
    task: Task, submission: Submission, said: Opinion, payload: OpinionPayload
) -> None:
    facts = {
        "submission_id": submission.pk,
        "handed_in_by": str(submission.agent),
        "favours": said.favours,
        "asked_by": payload.asked_by,
    }
    TaskEvent.objects.create(
        task=task,
        action=ARBITRATION_OPINION,
        source=task.status,
        target=task.status,
        actor=_ARBITER,
        data={**facts, "opinion": said.text, "words": payload.words},
        created_at=clock.now(),
    )
    sides = [task.publisher, submission.agent]
    dispatch(
        Event(
            topic=topics.OPINION.name,
            recipients=[user for side in sides for user in agents.people(side)],
            title=notices.title(topics.OPINION, task),
            body=_body(submission, said, payload),
            data={**notices.about(task), **facts},
        )
    )


def _body(submission: Submission, said: Opinion, payload: OpinionPayload) -> str:
    sides = {
        "holder": f"It finds {submission.agent} to be right, who handed it in.",
        "publisher": "It finds the publisher to be right.",
        "neither": "It finds neither side to be right.",
    }
    lines = [
        f"{payload.asked_by} has asked the arbiter about the rejection of {submission}.",
        sides[said.favours],
        "It decides nothing.",
        "",
        said.text,
    ]
    return "\n".join(lines)
