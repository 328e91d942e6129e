"""Putting jobs into the queue, in the caller's transaction.

Inside ``transaction.atomic()`` a job becomes visible at commit and vanishes at rollback; the workers
are woken after the commit.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction

from jobs import arguments, models, payload, registry, wakeup
from jobs.exceptions import InvalidJob, UnknownJobType
from jobs.identifiers import uuid7, uuid7s
from jobs.insertion import Row, Times, insert
from jobs.models import Job, Priority, Status

_LIVE = """
SELECT unique_key, id FROM jobs WHERE unique_key = ANY(%s) AND status IN ('pending', 'running')
"""
_ROUNDS = 10
_LARGEST_CALL = 200_000_000
"""Bytes of payloads in one statement: PostgreSQL takes up to 1 GB, this process several copies of it."""


@dataclass(kw_only=True, slots=True)
class NewJob:
    """A job to enqueue; each field means what the argument of :func:`enqueue` means."""

    type: str
    payload: Any = None
    ref_id: object = None
    run_at: dt.datetime | None = None
    priority: Priority | None = None
    unique_key: str | None = None
    queue: str | None = None
    max_attempts: int | None = None


def enqueue(
    type: str,  # noqa: A002 (the column's public name)
    payload: Any = None,
    *,
    ref_id: object = None,
    run_at: dt.datetime | None = None,
    priority: Priority | None = None,
    unique_key: str | None = None,
    queue: str | None = None,
    max_attempts: int | None = None,
) -> Job:
    """Enqueue one job and return it.

    ``payload`` is a dict or the handler's dataclass. ``ref_id`` names the row that the job is about.
    ``run_at`` (aware) is the earliest time; None is now, on the database's clock. ``priority``, ``queue`` and
    ``max_attempts`` default to what the handler was registered with.

    With a ``unique_key`` that a pending or running job has already, nothing is enqueued: that
    live job is returned, with ``deduplicated`` true.

    Raises :class:`~jobs.exceptions.InvalidJob` (``InvalidPayload`` for the payload), which names the
    argument, and :class:`~jobs.exceptions.UnknownJobType`.
    """
    new = NewJob(
        type=type,
        payload=payload,
        ref_id=ref_id,
        run_at=run_at,
        priority=priority,
        unique_key=unique_key,
        queue=queue,
        max_attempts=max_attempts,
    )
    row = _row(uuid7(), new)
    if unique_key is None:
        alone = not connections[DEFAULT_DB_ALIAS].in_atomic_block
        told = alone and wakeup.take_along()
        inserted = insert([row], returning=True, notify=told)
        if not told:
            _wake([row.queue])
        return _job(row, inserted[row.id])
    # The live job may end, and its row go with that, between the look for its id and the look into it.
    for _ in range(_ROUNDS):
        ((job_id, times),) = _insert_unique([row])
        if times is not None:
            return _job(row, times)
        # Deferred, since what somebody else put there may be a payload that cannot be decoded.
        job = Job.objects.defer("payload").filter(pk=job_id).first()
        if job is not None:
            job.deduplicated = True
            return job
    raise InvalidJob(
        f"unique_key: the jobs that hold {unique_key!r} end faster than they can be read"
    )


def enqueue_many(jobs: Iterable[NewJob]) -> list[uuid.UUID]:
    """Enqueue all of them in one statement and return their ids, in the order given.

    Where a unique key is already live, or stands in the list before, the id is the live job's.
    One that is refused refuses them all, with its position in the error.
    """
    rows = _rows(list(jobs))
    if any(row.unique_key is not None for row in rows):
        return [job_id for job_id, _ in _insert_unique(rows)]
    if rows:
        insert(rows, returning=False)
        _wake({row.queue for row in rows})
    return [row.id for row in rows]


def _rows(jobs: Sequence[NewJob]) -> list[Row]:
    rows: list[Row] = []
    ids = uuid7s(len(jobs))
    try:
        rows.extend(map(_row, ids, jobs))
    except (InvalidJob, UnknownJobType) as error:
        raise type(error)(f"jobs[{len(rows)}]: {error}") from error
    size = sum(len(row.payload) for row in rows)
    if size > _LARGEST_CALL:
        raise InvalidJob(
            f"jobs: their payloads have {size:,} characters, at most {_LARGEST_CALL:,} are accepted in one call; "
            "enqueue them in several, in one transaction where they belong together"
        )
    return rows


def _wake(queues: Iterable[str]) -> None:
    transaction.on_commit(partial(wakeup.wake, queues), robust=True)


def _insert_unique(rows: Sequence[Row]) -> list[tuple[uuid.UUID, Times | None]]:
    """The id of each row's job, with its times where it is new; else of the one that is live under its key."""
    found: dict[int, tuple[uuid.UUID, Times | None]] = {}
    left = dict(enumerate(rows))
    # The live job may end between the insert that met it and the look for it; then its key is free again.
    for _ in range(_ROUNDS):
        if not left:
            break
        inserted = insert(list(left.values()), returning=True)
        for n, row in left.items():
            if row.id in inserted:
                found[n] = row.id, inserted[row.id]
        left = {n: row for n, row in left.items() if n not in found}
        live = _live_jobs([row.unique_key for row in left.values()])
        for n, row in left.items():
            if row.unique_key in live:
                found[n] = live[row.unique_key], None
        left = {n: row for n, row in left.items() if n not in found}
    if left:
        keys = sorted(str(row.unique_key) for row in left.values())
        raise InvalidJob(
            f"unique_key: the job that holds {keys[0]!r} is not visible to this transaction; "
            "enqueue outside REPEATABLE READ or SERIALIZABLE"
        )
    queues = {row.queue for n, row in enumerate(rows) if found[n][1] is not None}
    if queues:
        _wake(queues)
    return [found[n] for n in range(len(rows))]


def _job(row: Row, times: Times) -> Job:
    """The new job without another look into the table."""
    run_at, created_at = times
    values = {
        **row._asdict(),
        "payload": json.loads(row.payload),
        "status": Status.PENDING,
        "attempts": 0,
        "run_at": run_at,
        "leased_by": None,
        "lease_until": None,
        "lease_seq": 0,
        "cancel_requested_at": None,
        "last_error": "",
        "created_at": created_at,
        "started_at": None,
        "completed_at": None,
        "updated_at": created_at,
    }
    names = [field.attname for field in Job._meta.concrete_fields]
    return Job.from_db(DEFAULT_DB_ALIAS, names, [values[name] for name in names])


def _row(job_id: uuid.UUID, job: NewJob) -> Row:
    """What is stored of one job; refuses what could not be. What the type was registered with has been checked then."""
    job_type = registry.find_job_type(job.type) if type(job.type) is str else None
    if job_type is None:
        name = arguments.required_text("type", job.type, models.NAME_MAX_LENGTH)
        job_type = registry.job_type(name)
    return Row(
        job_id,
        job_type.name,
        arguments.reference(job.ref_id, models.REF_ID_MAX_LENGTH),
        job_type.queue
        if job.queue is None
        else arguments.required_text("queue", job.queue, models.QUEUE_MAX_LENGTH),
        int(
            job_type.priority
            if job.priority is None
            else arguments.priority(job.priority)
        ),
        payload.encode(job.payload, job_type),
        job_type.max_attempts
        if job.max_attempts is None
        else arguments.max_attempts(job.max_attempts),
        arguments.time(job.run_at),
        arguments.text("unique_key", job.unique_key, models.UNIQUE_KEY_MAX_LENGTH),
    )


def _live_jobs(keys: list[str | None]) -> dict[str | None, uuid.UUID]:
    if not keys:
        return {}
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_LIVE, [keys])
        return dict(cursor.fetchall())
