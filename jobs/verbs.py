"""How an operator's verb is done to jobs: under locks, audited, in batches, with what was left and why.

Each verb looks at a job's state under its row's lock and changes nothing that may not be changed. ``operator_acted`` is
sent in the same transaction, so that what is not audited does not happen. Large sets go in batches, each a transaction of
its own. The verbs themselves are in :mod:`jobs.actions`.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from django.db import DatabaseError, connection, transaction

from jobs.action_result import Asked, Result, Skip
from jobs.connection import is_away, is_direct
from jobs.display import first_line
from jobs.events import LogEvent
from jobs.models import Job, Status
from jobs.outcomes import describe
from jobs.querysets import JobQuerySet
from jobs.signals import operator_acted

log = logging.getLogger(__name__)

BATCH = 500
"""Jobs in one transaction."""

NO_SUCH_JOB = "no such job"

Chosen = JobQuerySet | Iterable[uuid.UUID]


@dataclass(kw_only=True, slots=True)
class Written:
    """What became of locked jobs: ``done``; ``asked``, whose workers must do the rest; ``skipped``.

    ``asked_before`` are those of ``asked`` that nothing was written to.
    """

    done: list[Job] = field(default_factory=list)
    asked: list[Job] = field(default_factory=list)
    asked_before: list[Asked] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verb:
    """``eligible`` picks the jobs that it may change, ``write`` changes them under their locks.

    ``states`` are those that a job must be in, ``ineligible`` says why one that is in them may still not be
    changed. ``facts`` is what the audit remembers of the job as it was. ``tell`` is called with the jobs that were changed,
    once that is committed.

    ``alone`` picks, of what ``eligible`` has left, jobs that are changed each in a transaction of its own: workers lock
    running rows in an order of theirs, and whoever holds no more than one lock is in no circle of waits.
    """

    action: str
    participle: str
    states: tuple[Status, ...]
    eligible: Callable[[JobQuerySet], JobQuerySet]
    ineligible: str
    write: Callable[[list[Job]], Written]
    facts: Callable[[Job], dict[str, Any]]
    tell: Callable[[list[Job]], None]
    alone: Callable[[JobQuerySet], JobQuerySet] = JobQuerySet.none


def act(verb: Verb, chosen: Chosen, *, actor: str, time_limit: float | None) -> Result:
    """Do it to all that are chosen; ``time_limit`` (seconds) ends a large set after a batch, see :class:`Result`."""
    result = Result(participle=verb.participle)
    started = time.monotonic()
    for number, batch in enumerate(_batches(chosen)):
        late = time_limit is not None and time.monotonic() - started > time_limit
        if late and number:
            result.unfinished = True
            break
        _act_on_batch(verb, batch, actor=actor, result=result)
    return result


def audit(action: str, target: str, *, actor: str, data: dict[str, Any]) -> None:
    """Tell who did what, in the open transaction; logged once it has committed."""
    operator_acted.send(
        sender=Job, actor=actor, action=action, target=target, data=data
    )
    facts = {"actor": actor, "action": action, "target": target}
    transaction.on_commit(
        partial(log.info, LogEvent.OPERATOR_ACTION, extra=facts), robust=True
    )


def _batches(chosen: Chosen) -> Iterator[list[uuid.UUID]]:
    if isinstance(chosen, JobQuerySet):
        # In the order in which every batch locks its rows; a cursor on the server, so that the set is
        # what it was at the start, and a million ids are not held here. Behind a pooler, where the next
        # transaction may be in another session, they are.
        found = chosen.order_by("pk").values_list("pk", flat=True)
        connection.ensure_connection()
        direct = is_direct(connection.connection)
        chosen = found.iterator(chunk_size=BATCH) if direct else found
    else:
        chosen = dict.fromkeys(chosen)
    ids = iter(chosen)
    while batch := list(islice(ids, BATCH)):
        yield batch


def _act_on_batch(
    verb: Verb, ids: list[uuid.UUID], *, actor: str, result: Result
) -> None:
    try:
        left = _act_on_locked(verb, verb.eligible, ids, actor=actor, result=result)
    except DatabaseError as error:
        if is_away(error):
            raise
        _act_by_halves(verb, ids, error, actor=actor, result=result)
        return
    if left:
        alone = verb.alone(Job.objects.filter(pk__in=left)).order_by("pk")
        for pk in alone.values_list("pk", flat=True):
            try:
                if _act_on_locked(verb, verb.alone, [pk], actor=actor, result=result):
                    continue
            except DatabaseError as error:
                if is_away(error):
                    raise
                _act_by_halves(verb, [pk], error, actor=actor, result=result)
            left.remove(pk)
    result.skipped += _refusals(verb, left)


def _act_by_halves(
    verb: Verb,
    ids: list[uuid.UUID],
    error: DatabaseError,
    *,
    actor: str,
    result: Result,
) -> None:
    """After an error that one of them has caused: down to those that the database refuses, which are skipped."""
    if len(ids) == 1:
        reason = (
            f"the database refused it: {first_line(describe(error.__cause__ or error))}"
        )
        result.skipped.append(Skip(target=ids[0], reason=reason))
        return
    middle = len(ids) // 2
    for half in (ids[:middle], ids[middle:]):
        _act_on_batch(verb, half, actor=actor, result=result)


def _act_on_locked(
    verb: Verb,
    eligible: Callable[[JobQuerySet], JobQuerySet],
    ids: list[uuid.UUID],
    *,
    actor: str,
    result: Result,
) -> list[uuid.UUID]:
    """Do it in one transaction, and return what was not eligible once it was locked."""
    with transaction.atomic():
        jobs = list(
            # Without the payload: it is not needed, and some cannot be decoded.
            eligible(Job.objects.filter(pk__in=ids))
            .select_for_update(no_key=True)
            .order_by("pk")
            .defer("payload")
        )
        written = verb.write(jobs)
        changed = written.done + written.asked
        for job in changed:
            audit(verb.action, f"job:{job.pk}", actor=actor, data=verb.facts(job))
        if changed:
            transaction.on_commit(partial(verb.tell, changed), robust=True)
    result.done += [job.pk for job in written.done]
    result.asked += [
        *(Asked(target=job.pk, worker=job.leased_by or "") for job in written.asked),
        *written.asked_before,
    ]
    result.skipped += written.skipped
    locked = {job.pk for job in jobs}
    return [pk for pk in ids if pk not in locked]


def _refusals(verb: Verb, ids: list[uuid.UUID]) -> list[Skip]:
    if not ids:
        return []
    statuses = dict(Job.objects.filter(pk__in=ids).values_list("pk", "status"))
    return [Skip(target=pk, reason=_refusal(verb, statuses.get(pk))) for pk in ids]


def _refusal(verb: Verb, status: str | None) -> str:
    if status is None:
        return NO_SUCH_JOB
    if status in verb.states:
        return verb.ineligible
    allowed = " and ".join(verb.states)
    return f"only {allowed} jobs can be {verb.participle}, not {status} ones"
