"""What the publisher's silence means: acceptance, and for a contest the judge's word."""

from __future__ import annotations

import logging

from jobs.context import JobContext
from workspaces.tasks import clock, judge, machine, sockets
from workspaces.tasks.actors import WORKER
from workspaces.tasks.change import Details
from workspaces.tasks.events import LogEvent
from workspaces.tasks.exceptions import JudgeError, RefusedVerdict
from workspaces.tasks.models import Task
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.states import Action, Reason, Status, Template

log = logging.getLogger(__name__)


def auto_accept(task_id: int, *, context: JobContext | None = None) -> Outcome:
    """Accept what was handed in; of a contest in review, the entry that the judge chooses.

    The judge is asked before the row is locked, since it may take minutes: where the publisher has picked meanwhile, its
    answer is not applied. Nor is it where ``context``, the job's that asks, is not to go on. Raises UnknownTask and what
    :func:`workspaces.tasks.judge.judge` and :func:`workspaces.tasks.sockets.check_wanted` raise; then nothing is decided.
    """
    task = Task.objects.filter(pk=task_id).first()
    if task is None or not _to_be_judged(task):
        outcome = machine.apply(task_id, Action.REVIEW_AUTO_ACCEPT, by=WORKER)
        if outcome.code is not Reason.NO_SUCH_SUBMISSION:
            return outcome
        # The time has come while the row was waited for: now it is for the judge.
        return auto_accept(task_id, context=context)
    try:
        verdict = judge.judge(task)
    except JudgeError:
        if _to_be_judged(Task.objects.filter(pk=task_id).first() or task):
            raise
        # Its publisher was quicker: there was nothing left to judge.
        return machine.apply(task_id, Action.REVIEW_AUTO_ACCEPT, by=WORKER)
    sockets.check_wanted(sockets.CONTEST_JUDGE, context)
    log.info(
        LogEvent.JUDGED,
        extra={"task_id": task_id, "submission_id": verdict.winner},
    )
    outcome = machine.apply(
        task_id,
        Action.REVIEW_AUTO_ACCEPT,
        by=WORKER,
        details=Details(submission=verdict.winner, reason=verdict.reasons),
    )
    # Entries that changed beside the judge: it is to be asked again, or the task would wait for nobody.
    if outcome.code is Reason.NO_SUCH_SUBMISSION:
        raise RefusedVerdict(f"TASKS_CONTEST_JUDGE: {outcome.reason}")
    return outcome


def _to_be_judged(task: Task) -> bool:
    due = task.review_until is not None and task.review_until <= clock.now()
    return task.template == Template.CONTEST and task.status == Status.REVIEWING and due
