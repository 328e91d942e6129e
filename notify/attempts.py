"""The rows that tell what was sent: one for each attempt, there before the request and closed after it."""

from __future__ import annotations

import datetime as dt
import itertools
import uuid

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models.functions import Now

from jobs import thread_connection
from jobs.riding import Write
from notify.health import places
from notify.models import WebhookAttempt, WebhookEndpoint

SWEEP_EVERY = 200
"""Attempts of this process from one look for old rows to the next; the first one looks."""

_OLD_ROWS_PER_ATTEMPT = 10
_NOT_KNOWN_YET: dict[str, object] = {
    "status": None,
    "verdict": WebhookAttempt.Verdict.UNKNOWN,
    "cause": "",
    "failure": "",
    "duration": None,
    "dns_ms": None,
    "connect_ms": None,
    "tls_ms": None,
    "answer_ms": None,
    "peer": None,
    "excerpt": "",
}
_FOUND_OUT = tuple(_NOT_KNOWN_YET)
# In the order of the model's fields, which is that in which Django takes the values.
_ATTEMPT = [
    *("id", "job_id", "endpoint_id", "topic", "number", "finished_at"),
    *_FOUND_OUT,
    "trial",
]

_TYPES = {
    **dict.fromkeys(("verdict", "cause", "failure", "excerpt"), "text"),
    **dict.fromkeys(("dns_ms", "connect_ms", "tls_ms", "answer_ms"), "float8"),
    "status": "int",
    "duration": "interval",
    "peer": "inet",
}
# Written out: Django takes longer to make it anew for each delivery than it takes to run. The ends of several can wait
# and be written together. Looked up by ANY: the planner takes what comes from JSON for many rows, and would read the whole
# table for them.
_CLOSE = Write(
    sql=f"""
WITH ended AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(riding)s::json) AS ended (
        id bigint, keep_place boolean, {", ".join(f"{name} {_TYPES[name]}" for name in _FOUND_OUT)}
    )
)
UPDATE webhook_attempts AS attempt
SET finished_at = attempt.started_at + coalesce(ended.duration, INTERVAL '0'),
    {", ".join(f"{name} = ended.{name}" for name in _FOUND_OUT)},
    slot = CASE WHEN ended.keep_place THEN attempt.slot END
FROM ended
WHERE attempt.id = ANY (ARRAY(SELECT id FROM ended)) AND attempt.id = ended.id
RETURNING attempt.id
"""  # noqa: S608 (put together from the names of columns)
)

_opened = itertools.count()


def open_attempt(
    endpoint_id: int,
    *,
    job_id: uuid.UUID | None,
    number: int,
    topic: str,
    disabled_too: bool = False,
) -> tuple[WebhookEndpoint | None, WebhookAttempt | None]:
    """The endpoint as it is now, and the row of an attempt at it, in one statement and one commit.

    No row is written for an endpoint that is gone, disabled, or has no place for one more: as many are under way as it
    takes, or its breaker keeps deliveries back. With ``disabled_too`` neither counts, and no place is taken. Must not be called inside a
    transaction: the row has to be there while the request is under way.
    """
    if next(_opened) % SWEEP_EVERY == 0:
        remove_old()
    take = places.take_none if disabled_too else places.take
    values, pk, trial = take(
        {"endpoint_id": endpoint_id, "job_id": job_id, "topic": topic, "number": number}
    )
    if values is None:
        return None, None
    endpoint = WebhookEndpoint.from_db(DEFAULT_DB_ALIAS, places.ENDPOINT_FIELDS, values)
    if pk is None:
        return endpoint, None
    known = [pk, job_id, endpoint_id, topic, number, None]
    attempt = WebhookAttempt.from_db(
        DEFAULT_DB_ALIAS, _ATTEMPT, [*known, *_NOT_KNOWN_YET.values(), trial]
    )
    attempt.endpoint = endpoint
    return endpoint, attempt


def close_attempt(
    attempt: WebhookAttempt, *, keep_place: bool = False, may_wait: bool = False
) -> None:
    """Write what was found out, and that it has ended.

    With ``keep_place`` its place in flight stays taken, until whoever decides on the breaker frees it. With ``may_wait``
    it is written together with the thread's next statement. That the row is old enough to have been taken away meanwhile
    is no failure.
    """
    row = {name: getattr(attempt, name) for name in _FOUND_OUT}
    row |= {"id": attempt.pk, "keep_place": keep_place}
    if attempt.duration is not None:
        row["duration"] = f"{attempt.duration.total_seconds():.6f} s"
    if may_wait:
        thread_connection.ride_along(_CLOSE, row)
    else:
        thread_connection.execute(_CLOSE.sql, _CLOSE.parameters([row]))


def last_took(endpoint_id: int) -> float | None:
    """Seconds that the endpoint's last attempt took; None where there is none, or nobody knows how it ended."""
    newest = (
        WebhookAttempt.objects.filter(endpoint=endpoint_id, slot__isnull=True)
        .exclude(verdict__in=["skipped", "superseded"])
        .order_by("-id")
        .values_list("duration", flat=True)
        .first()
    )
    return None if newest is None else newest.total_seconds()


def skip(
    endpoint: WebhookEndpoint | None,
    *,
    job_id: uuid.UUID,
    number: int,
    topic: str,
    cause: str,
) -> None:
    """Leave a row that says why a delivery was not sent."""
    WebhookAttempt.objects.create(
        endpoint=endpoint,
        job_id=job_id,
        topic=topic,
        number=number,
        finished_at=Now(),
        verdict=WebhookAttempt.Verdict.SKIPPED,
        cause=cause,
    )


def remove_old() -> None:
    """Take rows that are older than the jobs that they explain can be.

    Ten times as many as come in from one look to the next: the table does not grow without end.
    """
    retention: dt.timedelta = settings.JOBS_JOB_PURGE_DEAD_RETENTION
    oldest = WebhookAttempt.objects.oldest(SWEEP_EVERY * _OLD_ROWS_PER_ATTEMPT)
    old = oldest.filter(started_at__lt=Now() - retention)
    if not old.exists():
        return
    with transaction.atomic():
        # Two workers that took the same rows in different orders would lock each other out.
        taken = list(
            old.select_for_update(skip_locked=True).values_list("pk", flat=True)
        )
        WebhookAttempt.objects.filter(pk__in=taken).delete()
