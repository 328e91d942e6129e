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

from jobs import models, payload, registry, wakeup
from jobs.exceptions import InvalidJob
from jobs.identifiers import uuid7
from jobs.models import Job, Priority, Status

_COLUMNS = {
    "id": "uuid",
    "type": "text",
    "ref_id": "text",
    "queue": "text",
    "priority": "smallint",
    "payload": "jsonb",
    "max_attempts": "integer",
    "run_at": "timestamptz",
    "unique_key": "text",
}
_INSERT = """
INSERT INTO jobs (id, type, ref_id, queue, priority, payload, max_attempts, run_at, unique_key)
SELECT id, type, ref_id, queue, priority, payload, max_attempts, coalesce(run_at, statement_timestamp()), unique_key
FROM unnest({arrays}) AS new ({names})
ORDER BY unique_key
ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND status IN ('pending', 'running') DO NOTHING
RETURNING id, run_at, created_at
""".format(
    arrays=", ".join(f"%s::{kind}[]" for kind in _COLUMNS.values()),
    names=", ".join(_COLUMNS),
)
_LIVE = """
SELECT unique_key, id FROM jobs WHERE unique_key = ANY(%s) AND status IN ('pending', 'running')
"""
_ROUNDS = 10
_MOST_ATTEMPTS = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """A job to enqueue; each field means what the argument of :func:`enqueue` means."""

    type: str
    payload: Any = None
    ref_id: str | None = None
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
    outcome = _insert(
        [
            NewJob(
                type=type,
                payload=payload,
                ref_id=None if ref_id is None else str(ref_id),
                run_at=run_at,
                priority=priority,
                unique_key=unique_key,
                queue=queue,
                max_attempts=max_attempts,
            )
        ]
    )[0]
    if outcome.new is not None:
        return outcome.new.job()
    # Deferred, since what somebody else put there may be a payload that cannot be decoded.
    job = Job.objects.defer("payload").get(pk=outcome.id)
    job.deduplicated = True
    return job


def enqueue_many(jobs: Iterable[NewJob]) -> list[uuid.UUID]:
    """Enqueue all of them in one statement and return their ids, in the order given.

    Where a unique key is already live, or stands in the list before, the id is the live job's.
    One that is refused refuses them all, with its position in the error.
    """
    return [outcome.id for outcome in _insert(list(jobs))]


@dataclass(frozen=True, kw_only=True, slots=True)
class _New:
    """The row of a new job, and the times that the database gave it."""

    row: tuple[Any, ...]
    run_at: dt.datetime
    created_at: dt.datetime

    def job(self) -> Job:
        """The job without another look into the table."""
        values = dict(zip(_COLUMNS, self.row, strict=True))
        values |= {"payload": json.loads(values["payload"]), "run_at": self.run_at}
        job = Job(
            **values,
            status=Status.PENDING,
            attempts=0,
            lease_seq=0,
            last_error="",
            created_at=self.created_at,
            updated_at=self.created_at,
        )
        job._state.adding = False
        job._state.db = DEFAULT_DB_ALIAS
        return job


@dataclass(frozen=True, kw_only=True, slots=True)
class _Outcome:
    """The id of the job; ``new`` is None where another one is live under its key."""

    id: uuid.UUID
    new: _New | None = None


def _insert(jobs: Sequence[NewJob]) -> list[_Outcome]:
    rows = []
    for position, job in enumerate(jobs):
        try:
            rows.append(_row(job))
        except InvalidJob as error:
            if len(jobs) == 1:
                raise
            raise type(error)(f"jobs[{position}]: {error}") from error
    result: dict[int, _Outcome] = {}
    left = dict(enumerate(rows))
    # The live job may end between the insert that met it and the look for it; then its key is free again.
    for _ in range(_ROUNDS):
        if not left:
            break
        inserted = _execute_insert(left.values())
        for n, row in left.items():
            if times := inserted.get(row[0]):
                new = _New(row=row, run_at=times[0], created_at=times[1])
                result[n] = _Outcome(id=row[0], new=new)
        left = {n: row for n, row in left.items() if n not in result}
        live = _live_jobs([row[-1] for row in left.values()])
        result |= {
            n: _Outcome(id=live[row[-1]]) for n, row in left.items() if row[-1] in live
        }
        left = {n: row for n, row in left.items() if n not in result}
    if left:
        keys = sorted({row[-1] for row in left.values()})
        raise InvalidJob(
            f"unique_key: the job that holds {keys[0]!r} is not visible to this transaction; "
            "enqueue outside REPEATABLE READ or SERIALIZABLE"
        )
    queues = {outcome.new.row[3] for outcome in result.values() if outcome.new}
    if queues:
        transaction.on_commit(partial(wakeup.wake, queues), robust=True)
    return [result[n] for n in range(len(rows))]


def _row(job: NewJob) -> tuple[Any, ...]:
    """The values of one job, in the order of ``_COLUMNS``; refuses what could not be stored."""
    job_type = registry.job_type(job.type)
    if job.run_at is not None and job.run_at.tzinfo is None:
        raise InvalidJob(f"run_at: must have a time zone, got {job.run_at!r}")
    priority = job_type.priority if job.priority is None else job.priority
    if priority not in Priority.values:
        raise InvalidJob(f"priority: must be one of {list(Priority)}, got {priority!r}")
    max_attempts = (
        job_type.max_attempts if job.max_attempts is None else job.max_attempts
    )
    if not 1 <= max_attempts <= _MOST_ATTEMPTS:
        raise InvalidJob(
            f"max_attempts: must be from 1 to {_MOST_ATTEMPTS:,}, got {max_attempts}"
        )
    queue = job_type.queue if job.queue is None else job.queue
    if not queue:
        raise InvalidJob("queue: must not be empty")
    return (
        uuid7(),
        job.type,
        _text("ref_id", job.ref_id, models.REF_ID_MAX_LENGTH),
        _text("queue", queue, models.QUEUE_MAX_LENGTH),
        int(priority),
        payload.encode(job.payload, job_type),
        max_attempts,
        job.run_at,
        _text("unique_key", job.unique_key, models.UNIQUE_KEY_MAX_LENGTH),
    )


def _text(name: str, value: str | None, longest: int) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidJob(f"{name}: must be text, got {type(value).__name__}")
    if "\x00" in value:
        raise InvalidJob(f"{name}: must not hold a NUL character")
    if not value.isascii() and any(
        "\ud800" <= character <= "\udfff" for character in value
    ):
        raise InvalidJob(f"{name}: must not hold a lone surrogate")
    if len(value) > longest:
        raise InvalidJob(
            f"{name}: {len(value)} characters, at most {longest} are accepted"
        )
    return value


def _execute_insert(
    rows: Iterable[tuple[Any, ...]],
) -> dict[uuid.UUID, tuple[dt.datetime, dt.datetime]]:
    """The new ids, each with its ``run_at`` and ``created_at``."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_INSERT, [list(column) for column in zip(*rows, strict=True)])
        return {
            job_id: (run_at, created_at)
            for job_id, run_at, created_at in cursor.fetchall()
        }


def _live_jobs(keys: list[str]) -> dict[str, uuid.UUID]:
    if not keys:
        return {}
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_LIVE, [keys])
        return dict(cursor.fetchall())
