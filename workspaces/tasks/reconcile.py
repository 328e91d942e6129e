"""Seeing that each live deadline has its job, whatever was done to the tables by hand, and mending what has not.

A healthy market is only read: two queries for a batch of tasks. What seems to be amiss is looked at again under the
task's lock, and mended there.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from collections import Counter
from functools import partial

from django.db import transaction

from jobs import actions, backoff
from jobs.connection import is_away
from jobs.enqueue import NewJob, enqueue_many
from jobs.models import Attempt, Job
from jobs.outcomes import describe
from workspaces.tasks import clock, deadlines, job_types, machine, watched
from workspaces.tasks.events import LogEvent
from workspaces.tasks.exceptions import TasksError, UnknownTask
from workspaces.tasks.models import Task
from workspaces.tasks.patience import impatient
from workspaces.tasks.states import Deadline
from workspaces.tasks.watched import Watched

log = logging.getLogger(__name__)

BATCH = 500
"""Tasks that are looked at together."""

ACTOR = "task_reconcile"
"""How the audit names who has retried a job."""

FIRST_PAUSE = dt.timedelta(minutes=30)
LONGEST_PAUSE = dt.timedelta(hours=24)
"""How long a job stays dead that has died again after a retry: the first, doubled each time, up to the second."""


_COLUMNS = [d.value for d in Deadline if d is not Deadline.TRANSFER_UNTIL]


def reconcile(stop: threading.Event) -> Counter[str]:
    """Look at every live task, and mend those of which a live deadline has no live job.

    Returns how many tasks were ``looked_at``, how many jobs were ``mended``, how many deadlines are ``waiting`` (for a contest's
    publisher, or for the next retry of a job that has died again), and in how many tasks mending ``failed``.
    """
    counts: Counter[str] = Counter(looked_at=0, mended=0, waiting=0, failed=0)
    after = 0
    while not stop.is_set():
        batch = _batch(after)
        counts["looked_at"] += len(batch)
        for task in watched.unwatched(batch):
            if stop.is_set():
                break
            counts.update(_mend_isolated(task.pk))
        if len(batch) < BATCH:
            break
        after = batch[-1].pk
    return counts


def _batch(after: int) -> list[Task]:
    """The next live tasks behind this id, without what is long in them."""
    rows = Task.objects.live().filter(pk__gt=after).order_by("pk").with_transfers()
    return list(rows.only("template", "status", *_COLUMNS)[:BATCH])


def _mend_isolated(task_id: int) -> Counter[str]:
    """One task that cannot be mended never holds up the others."""
    try:
        return mend(task_id)
    except UnknownTask:
        return Counter()
    except Exception as error:
        if is_away(error):
            raise
        log.exception(
            LogEvent.MENDING_FAILED,
            extra={"task_id": task_id, "error": describe(error)},
        )
        return Counter(failed=1)


def mend(task_id: int) -> Counter[str]:
    """Give each live deadline of the task its job back, and return how many were ``mended`` and how many are ``waiting``.

    A job that died or was cancelled is retried, with the history that it has; where none is there, or one that has
    completed and left its deadline live, a new one is enqueued.
    """
    counts: Counter[str] = Counter()
    missing: list[NewJob] = []
    with impatient(task_id):
        task = machine.locked(task_id)
        now = clock.now()
        for found in watched.look([task]):
            if found.is_watched and not found.is_put_off(now):
                continue
            if found.is_put_off(now) and found.job is not None:
                counts["mended"] += _hurried(found, found.job)
            elif _waits(found, now):
                counts["waiting"] += 1
            elif found.is_given_up and found.job is not None:
                counts["mended"] += _retried(found, found.job)
            else:
                missing.append(deadlines.job(task, found.live))
                _note(found, "enqueued")
        enqueue_many(missing)
    counts["mended"] += len(missing)
    return counts


def _retried(found: Watched, job: Job) -> bool:
    """Whether it was retried; otherwise somebody else has been quicker."""
    result = actions.retry([job.pk], actor=ACTOR)
    if result.done:
        _note(found, "retried")
        return True
    if Job.objects.live().filter(unique_key=job.unique_key).exists():
        return False
    raise TasksError(f"job {job.pk} of {found.task}: {result}")


def _hurried(found: Watched, job: Job) -> bool:
    """Whether it is due now; otherwise somebody else has been quicker."""
    if not actions.run_now([job.pk], actor=ACTOR).done:
        return False
    _note(found, "run now")
    return True


def _note(found: Watched, how: str) -> None:
    """Log it once it is committed."""
    facts = {
        "task_id": found.task.pk,
        "action": found.live.action.value,
        "deadline": job_types.written(found.live.at),
        "how": how,
    }
    transaction.on_commit(
        partial(log.warning, LogEvent.MENDED, extra=facts), robust=True
    )


def _waits(found: Watched, now: dt.datetime) -> bool:
    """Whether it is not to be mended now: a contest that waits for its publisher, or a job that would only die again."""
    job = found.job
    if job is None or not found.is_given_up or found.live.at > now:
        return False
    if found.needs_judge:
        return True
    retries = Attempt.objects.filter(job=job.pk).count() // job.max_attempts - 1
    if retries < 1 or job.completed_at is None:
        return False
    pause = backoff.plain_delay(retries, base=FIRST_PAUSE, cap=LONGEST_PAUSE)
    return job.completed_at + pause > now
