"""The rows that tell what was sent: one for each attempt, there before the request and closed after it."""

from __future__ import annotations

import datetime as dt
import itertools
import select
import uuid
from collections.abc import Sequence
from typing import Any

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, transaction
from django.db.models.functions import Now

from notify.models import WebhookAttempt, WebhookEndpoint

SWEEP_EVERY = 50
"""Attempts of this process from one look for old rows to the next; the first one looks."""

_OLD_ROWS_PER_ATTEMPT = 10
# In the order of the models' fields, which is that in which Django takes the values.
_ENDPOINT = ["id", "name", "url", "enabled", "encrypted_secret"]
_ATTEMPT = ["id", "job_id", "endpoint_id", "topic", "number"]

# Written out, as is _CLOSE: Django takes longer to make them anew for each delivery than they take to run.
_OPEN = f"""
WITH endpoint AS MATERIALIZED (
    SELECT {", ".join(_ENDPOINT)} FROM webhook_endpoints WHERE id = %(endpoint_id)s
), opened AS (
    INSERT INTO webhook_attempts (endpoint_id, job_id, topic, number)
    SELECT id, %(job_id)s, %(topic)s, %(number)s FROM endpoint WHERE enabled OR %(disabled_too)s
    RETURNING id
)
SELECT opened.id, endpoint.* FROM endpoint LEFT JOIN opened ON true
"""  # noqa: S608 (put together from the names of columns)
_FOUND_OUT = ("verdict", "status", "cause", "duration", "peer", "excerpt")
_CLOSE = f"""
UPDATE webhook_attempts
SET finished_at = statement_timestamp(), {", ".join(f"{name} = %({name})s" for name in _FOUND_OUT)}
WHERE id = %(id)s
"""  # noqa: S608 (as above)

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

    No row is written for an endpoint that is gone, nor, without ``disabled_too``, for one that is disabled.
    Must not be called inside a transaction: the row has to be there while the request is under way.
    """
    if next(_opened) % SWEEP_EVERY == 0:
        remove_old()
    rows = _execute(
        _OPEN,
        {
            "endpoint_id": endpoint_id,
            "job_id": job_id,
            "topic": topic,
            "number": number,
            "disabled_too": disabled_too,
        },
    )
    if not rows:
        return None, None
    pk, *values = rows[0]
    endpoint = WebhookEndpoint.from_db(DEFAULT_DB_ALIAS, _ENDPOINT, values)
    if pk is None:
        return endpoint, None
    attempt = WebhookAttempt.from_db(
        DEFAULT_DB_ALIAS, _ATTEMPT, [pk, job_id, endpoint_id, topic, number]
    )
    attempt.endpoint = endpoint
    return endpoint, attempt


def close_attempt(attempt: WebhookAttempt) -> None:
    """Write what was found out, and that it has ended.

    That the row is old enough to have been taken away meanwhile is no failure.
    """
    found_out = {name: getattr(attempt, name) for name in _FOUND_OUT}
    _execute(_CLOSE, {**found_out, "id": attempt.pk})


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


def _execute(query: str, parameters: dict[str, Any]) -> Sequence[tuple[Any, ...]]:
    """The statement's rows, through psycopg on Django's connection.

    Django's own cursor costs as much again as such a statement, and its health check one more statement; a
    connection that the server has ended shows without being asked.
    """
    if not connection.in_atomic_block and _has_ended():
        connection.close()
    with connection.wrap_database_errors:
        connection.ensure_connection()
        with psycopg.Cursor(connection.connection) as cursor:
            cursor.execute(query, parameters)
            return cursor.fetchall() if cursor.description else []


def _has_ended() -> bool:
    if connection.connection is None or connection.connection.closed:
        return connection.connection is not None
    # An idle connection has something to read when the server has hung up, and hardly ever otherwise.
    look = select.poll()
    look.register(connection.connection.fileno(), select.POLLIN)
    return bool(look.poll(0))
