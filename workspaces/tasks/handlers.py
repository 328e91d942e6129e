"""The deadline jobs: each reads its task afresh and asks the machine; what no longer applies is harmless. And the arbiter's.

One that comes before its deadline (an operator ran it now) waits for it, so that no deadline loses its job.
"""

from __future__ import annotations

import datetime as dt

from django.conf import settings

from jobs import backoff
from jobs.context import JobContext
from jobs.exceptions import Snooze
from jobs.models import Job, Priority
from jobs.registry import job_handler
from workspaces.tasks import arbitration, clock, job_types, judging, machine
from workspaces.tasks.actors import WORKER
from workspaces.tasks.exceptions import DeadlineJobError, TaskBusy, UnknownTask
from workspaces.tasks.job_types import (
    ARBITRATION_OPINION,
    BACKOFF_BASE,
    JUDGING,
    LEASE,
    MAX_ATTEMPTS,
    DeadlinePayload,
    OpinionPayload,
)
from workspaces.tasks.outcomes import Outcome
from workspaces.tasks.patience import AGAIN_AFTER
from workspaces.tasks.states import Action
from workspaces.tasks.watches import WORKER_ACTIONS


def delay(attempt: int) -> dt.timedelta:
    """30 s x 2^(attempt - 1), lengthened like every backoff."""
    cap = BACKOFF_BASE * 2**MAX_ATTEMPTS
    return backoff.delay(attempt, base=BACKOFF_BASE, cap=cap)


def act(context: JobContext, payload: DeadlinePayload) -> None:
    """Do to the task what the job's type says, as the worker."""
    task_id = _task_id(context)
    action = Action(context.type)
    try:
        if action is Action.REVIEW_AUTO_ACCEPT:
            outcome = judging.auto_accept(task_id, context=context)
        else:
            outcome = machine.apply(task_id, action, by=WORKER)
        if not outcome.ok and outcome.due is not None:
            _wait(context, outcome, outcome.due)
    except UnknownTask:
        raise _missing(context) from None
    except TaskBusy as busy:
        raise Snooze(AGAIN_AFTER, str(busy)) from busy


def _wait(context: JobContext, outcome: Outcome, due: dt.datetime) -> None:
    """The deadline is still to come: this job waits where it is the deadline's own, else another one is there for it."""
    key = job_types.key(outcome.action, outcome.task_id, due)
    if Job.objects.filter(pk=context.job_id, unique_key=key).exists():
        raise Snooze(max(due - clock.now(), dt.timedelta(0)), outcome.reason)
    machine.watch(outcome.task_id)


def _task_id(context: JobContext) -> int:
    if context.ref_id is None:
        raise DeadlineJobError(
            f"jobs.ref_id missing for {context.type}, id: {context.job_id}"
        )
    if not (context.ref_id.isascii() and context.ref_id.isdecimal()):
        raise _missing(context)
    return int(context.ref_id)


def _missing(context: JobContext) -> DeadlineJobError:
    return DeadlineJobError(
        f"tasks row missing for {context.type}, id: {context.ref_id}"
    )


for _action in WORKER_ACTIONS:
    job_handler(
        _action.value,
        max_attempts=MAX_ATTEMPTS,
        # Short, and due at a time that was promised: never behind deliveries to a receiver that hangs.
        priority=Priority.HIGH,
        backoff=delay,
        lease=LEASE,
        timeout=settings.TASKS_JUDGE_TIMEOUT
        if _action is Action.REVIEW_AUTO_ACCEPT
        else None,
    )(act)


@job_handler(ARBITRATION_OPINION, queue=JUDGING, timeout=settings.TASKS_JUDGE_TIMEOUT)
def give_opinion(context: JobContext, payload: OpinionPayload) -> None:
    """Ask the arbiter about one rejection, unless that was done."""
    arbitration.give_opinion(payload, context=context)
