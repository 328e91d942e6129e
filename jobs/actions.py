"""What an operator does to jobs: retry, repeat, cancel, run now.

Shared by the admin and the commands; how each is done to a set of jobs is in :mod:`jobs.verbs`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from django.db import IntegrityError, OperationalError, transaction
from django.db.models.functions import Now

from jobs import wakeup
from jobs.action_result import Asked, Result, Skip
from jobs.display import first_line
from jobs.models import LIVE, Job, Status
from jobs.querysets import JobQuerySet
from jobs.verbs import Chosen, Verb, Written, act


def retry(chosen: Chosen, *, actor: str, time_limit: float | None = None) -> Result:
    """Make dead and cancelled jobs pending again, due now, with all their attempts before them.

    Their last error and the rows of their attempts stay. A job whose ``unique_key`` a live job has is skipped.
    ``time_limit`` (seconds) ends a large set after a batch, see :class:`~jobs.action_result.Result`.
    """
    return act(_RETRY, chosen, actor=actor, time_limit=time_limit)


def repeat(
    chosen: Chosen,
    *,
    actor: str,
    time_limit: float | None = None,
    participle: str = "repeated",
    unless: Callable[[list[Job]], Mapping[uuid.UUID, str]] | None = None,
) -> Result:
    """As :func:`retry`, for dead and completed jobs: what was done is done again.

    Only for types of which the second time does no harm, as what they reach knows them by their ids. ``participle`` is
    how the result calls it. ``unless`` is given the jobs, under their locks and without payloads, and returns the reasons of those that
    are to be left.
    """

    def write(jobs: list[Job]) -> Written:
        reasons = {} if unless is None else unless(jobs)
        written = _write_retry([job for job in jobs if job.pk not in reasons])
        written.skipped += [
            Skip(target=pk, reason=reason) for pk, reason in reasons.items()
        ]
        return written

    verb = replace(_REPEAT, participle=participle, write=write)
    return act(verb, chosen, actor=actor, time_limit=time_limit)


def cancel(chosen: Chosen, *, actor: str, time_limit: float | None = None) -> Result:
    """Cancel pending jobs, and ask running ones to come to an end.

    The worker of a running one is told; unless its handler completes all the same the job is ``cancelled`` when the
    handler ends, however it does.
    """
    return act(_CANCEL, chosen, actor=actor, time_limit=time_limit)


def run_now(chosen: Chosen, *, actor: str, time_limit: float | None = None) -> Result:
    """Make pending jobs due now that wait for a later time."""
    return act(_RUN_NOW, chosen, actor=actor, time_limit=time_limit)


def _write_retry(jobs: list[Job]) -> Written:
    """All in one statement, or, where somebody took a key in the meantime, one by one."""
    free, skipped = [], []
    holders = _live_holders(job.unique_key for job in jobs)
    for job in jobs:
        if job.unique_key is None:
            free.append(job)
        elif job.unique_key in holders:
            skipped.append(_key_taken(job, holders[job.unique_key]))
        else:
            holders[job.unique_key] = job.pk
            free.append(job)
    try:
        with transaction.atomic():
            _make_pending(free)
    except (IntegrityError, OperationalError):
        # The second is a deadlock with another such call. In one order of keys there is none; a
        # lost connection is met again there.
        free, taken = _write_retry_one_by_one(free)
        skipped += taken
    return Written(done=free, skipped=skipped)


def _write_retry_one_by_one(jobs: list[Job]) -> tuple[list[Job], list[Skip]]:
    done, skipped = [], []
    for job in sorted(jobs, key=lambda job: job.unique_key or ""):
        try:
            with transaction.atomic():
                _make_pending([job])
        except IntegrityError:
            holder = _live_holders([job.unique_key]).get(job.unique_key or "")
            skipped.append(_key_taken(job, holder))
        else:
            done.append(job)
    return done, skipped


def _make_pending(jobs: list[Job]) -> None:
    # lease_seq stays: it only ever grows, or a stale worker could write again.
    Job.objects.filter(pk__in=[job.pk for job in jobs]).update(
        status=Status.PENDING,
        run_at=Now(),
        attempts=0,
        completed_at=None,
        cancel_requested_at=None,
        leased_by=None,
        lease_until=None,
        updated_at=Now(),
    )


def _live_holders(keys: Iterable[str | None]) -> dict[str, uuid.UUID]:
    wanted = {key for key in keys if key is not None}
    if not wanted:
        return {}
    live = Job.objects.filter(unique_key__in=wanted, status__in=LIVE)
    return {str(key): pk for key, pk in live.values_list("unique_key", "pk")}


def _key_taken(job: Job, holder: uuid.UUID | None) -> Skip:
    return Skip(target=job.pk, reason="a live job has the key", holder=holder)


def _write_cancel(jobs: list[Job]) -> Written:
    """A running row is its worker's to end: here it only takes the request, and no second one."""
    written = Written()
    for job in jobs:
        if job.status == Status.PENDING:
            written.done.append(job)
        elif job.cancel_requested_at is None:
            written.asked.append(job)
        else:
            written.asked_before.append(
                Asked(
                    target=job.pk,
                    worker=job.leased_by or "",
                    since=job.cancel_requested_at,
                )
            )
    _update(written.done, status=Status.CANCELLED, completed_at=Now())
    _update(written.asked, cancel_requested_at=Now())
    return written


def _update(jobs: list[Job], **changes: Any) -> None:
    if jobs:
        Job.objects.filter(pk__in=[job.pk for job in jobs]).update(
            **changes, updated_at=Now()
        )


def _write_run_now(jobs: list[Job]) -> Written:
    _update(jobs, run_at=Now())
    return Written(done=jobs)


def _facts(job: Job, **more: Any) -> dict[str, Any]:
    return {"type": job.type, "ref_id": job.ref_id, **more}


def _end_facts(job: Job) -> dict[str, Any]:
    return _facts(
        job,
        status=job.status,
        attempts=job.attempts,
        last_error=first_line(job.last_error),
    )


def _cancel_facts(job: Job) -> dict[str, Any]:
    if job.status == Status.PENDING:
        return _facts(job, status=job.status)
    return _facts(job, status=job.status, worker=job.leased_by)


def _wake(jobs: list[Job]) -> None:
    wakeup.wake({job.queue for job in jobs})


def _tell_workers(jobs: list[Job]) -> None:
    running = [(job.pk, job.lease_seq) for job in jobs if job.status == Status.RUNNING]
    if running:
        wakeup.cancel(running)


_CHANGED = "its state changed at this moment"
_RETRY = Verb(
    action="job.retry",
    participle="retried",
    states=(Status.DEAD, Status.CANCELLED),
    eligible=JobQuerySet.retryable,
    ineligible=_CHANGED,
    write=_write_retry,
    facts=_end_facts,
    tell=_wake,
)
_REPEAT = Verb(
    action="job.repeat",
    participle="repeated",
    states=(Status.DEAD, Status.COMPLETED),
    eligible=JobQuerySet.repeatable,
    ineligible=_CHANGED,
    write=_write_retry,
    facts=_end_facts,
    tell=_wake,
)
_CANCEL = Verb(
    action="job.cancel",
    participle="cancelled",
    states=(Status.PENDING, Status.RUNNING),
    eligible=JobQuerySet.pending,
    ineligible=_CHANGED,
    write=_write_cancel,
    facts=_cancel_facts,
    tell=_tell_workers,
    alone=JobQuerySet.live,
)
_RUN_NOW = Verb(
    action="job.run_now",
    participle="made due now",
    states=(Status.PENDING,),
    eligible=lambda jobs: jobs.pending().filter(run_at__gt=Now()),
    ineligible="it is due already",
    write=_write_run_now,
    facts=lambda job: _facts(job, run_at=job.run_at.isoformat()),
    tell=_wake,
)
