"""What an operator does to jobs: retry, cancel, run now.

Shared by the admin and the commands. Each verb looks at a job's state under its row's lock and
changes nothing that may not be changed. ``operator_acted`` is sent in the same transaction, so that what is
not audited does not happen. Large sets go in batches, each a transaction of its own.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from django.db import IntegrityError, OperationalError, transaction
from django.db.models.functions import Now

from jobs import wakeup
from jobs.action_result import Result, Skip
from jobs.display import first_line
from jobs.events import LogEvent
from jobs.models import LIVE, Job, Status
from jobs.querysets import JobQuerySet
from jobs.signals import operator_acted

log = logging.getLogger(__name__)

BATCH = 500
"""Jobs in one transaction."""

NO_SUCH_JOB = "no such job"

Chosen = JobQuerySet | Iterable[uuid.UUID]


Written = tuple[list[Job], list[Skip]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Verb:
    """``eligible`` picks the jobs that it may change, ``write`` changes them under their locks.

    ``states`` are those that a job must be in, ``ineligible`` says why one that is in them may still not be
    changed. ``facts`` is what the audit remembers of the job as it was.
    """

    action: str
    participle: str
    states: tuple[Status, ...]
    eligible: Callable[[JobQuerySet], JobQuerySet]
    ineligible: str
    write: Callable[[list[Job]], Written]
    facts: Callable[[Job], dict[str, Any]]
    wakes: bool


def retry(chosen: Chosen, *, actor: str, time_limit: float | None = None) -> Result:
    """Make dead and cancelled jobs pending again, due now, with all their attempts before them.

    Their last error and the rows of their attempts stay. A job whose ``unique_key`` a live job has is skipped.
    ``time_limit`` (seconds) ends a large set after a batch, see :class:`Result`.
    """
    return _act(_RETRY, chosen, actor=actor, time_limit=time_limit)


def cancel(chosen: Chosen, *, actor: str, time_limit: float | None = None) -> Result:
    """Cancel pending jobs; a running one is its worker's and is skipped."""
    return _act(_CANCEL, chosen, actor=actor, time_limit=time_limit)


def run_now(chosen: Chosen, *, actor: str, time_limit: float | None = None) -> Result:
    """Make pending jobs due now that wait for a later time."""
    return _act(_RUN_NOW, chosen, actor=actor, time_limit=time_limit)


def _act(
    verb: _Verb, chosen: Chosen, *, actor: str, time_limit: float | None
) -> Result:
    result = Result(participle=verb.participle)
    started = time.monotonic()
    for number, batch in enumerate(_batches(chosen)):
        late = time_limit is not None and time.monotonic() - started > time_limit
        if late and number:
            result.unfinished = True
            break
        done, skipped = _act_on_batch(verb, batch, actor=actor)
        result.done += done
        result.skipped += skipped
    return result


def _batches(chosen: Chosen) -> Iterator[list[uuid.UUID]]:
    if isinstance(chosen, JobQuerySet):
        # In the order in which every batch locks its rows; a cursor on the server, so that the set is
        # what it was at the start, and a million ids are not held here.
        chosen = (
            chosen.order_by("pk")
            .values_list("pk", flat=True)
            .iterator(chunk_size=BATCH)
        )
    else:
        chosen = dict.fromkeys(chosen)
    ids = iter(chosen)
    while batch := list(islice(ids, BATCH)):
        yield batch


def _act_on_batch(
    verb: _Verb, ids: list[uuid.UUID], *, actor: str
) -> tuple[list[uuid.UUID], list[Skip]]:
    with transaction.atomic():
        jobs = list(
            # Without the payload: it is not needed, and some cannot be decoded.
            verb.eligible(Job.objects.filter(pk__in=ids))
            .select_for_update(no_key=True)
            .order_by("pk")
            .defer("payload")
        )
        done, skipped = verb.write(jobs)
        for job in done:
            audit(verb.action, f"job:{job.pk}", actor=actor, data=verb.facts(job))
        if done and verb.wakes:
            queues = {job.queue for job in done}
            transaction.on_commit(partial(wakeup.wake, queues), robust=True)
    eligible = {job.pk for job in jobs}
    skipped += _refusals(verb, [pk for pk in ids if pk not in eligible])
    return [job.pk for job in done], skipped


def audit(action: str, target: str, *, actor: str, data: dict[str, Any]) -> None:
    """Tell who did what, in the open transaction; logged once it has committed."""
    operator_acted.send(
        sender=Job, actor=actor, action=action, target=target, data=data
    )
    facts = {"actor": actor, "action": action, "target": target}
    transaction.on_commit(
        partial(log.info, LogEvent.OPERATOR_ACTION, extra=facts), robust=True
    )


def _refusals(verb: _Verb, ids: list[uuid.UUID]) -> list[Skip]:
    if not ids:
        return []
    statuses = dict(Job.objects.filter(pk__in=ids).values_list("pk", "status"))
    return [Skip(target=pk, reason=_refusal(verb, statuses.get(pk))) for pk in ids]


def _refusal(verb: _Verb, status: str | None) -> str:
    if status is None:
        return NO_SUCH_JOB
    if status in verb.states:
        return verb.ineligible
    allowed = " and ".join(verb.states)
    return f"only {allowed} jobs can be {verb.participle}, not {status} ones"


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
    return free, skipped


def _write_retry_one_by_one(jobs: list[Job]) -> Written:
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
    Job.objects.filter(pk__in=[job.pk for job in jobs]).update(
        status=Status.CANCELLED, completed_at=Now(), updated_at=Now()
    )
    return jobs, []


def _write_run_now(jobs: list[Job]) -> Written:
    Job.objects.filter(pk__in=[job.pk for job in jobs]).update(
        run_at=Now(), updated_at=Now()
    )
    return jobs, []


def _facts(job: Job, **more: Any) -> dict[str, Any]:
    return {"type": job.type, "ref_id": job.ref_id, **more}


_CHANGED = "its state changed at this moment"
_RETRY = _Verb(
    action="job.retry",
    participle="retried",
    states=(Status.DEAD, Status.CANCELLED),
    eligible=JobQuerySet.retryable,
    ineligible=_CHANGED,
    write=_write_retry,
    facts=lambda job: _facts(
        job,
        status=job.status,
        attempts=job.attempts,
        last_error=first_line(job.last_error),
    ),
    wakes=True,
)
_CANCEL = _Verb(
    action="job.cancel",
    participle="cancelled",
    states=(Status.PENDING,),
    eligible=JobQuerySet.pending,
    ineligible=_CHANGED,
    write=_write_cancel,
    facts=_facts,
    wakes=False,
)
_RUN_NOW = _Verb(
    action="job.run_now",
    participle="made due now",
    states=(Status.PENDING,),
    eligible=lambda jobs: jobs.pending().filter(run_at__gt=Now()),
    ineligible="it is due already",
    write=_write_run_now,
    facts=lambda job: _facts(job, run_at=job.run_at.isoformat()),
    wakes=True,
)
