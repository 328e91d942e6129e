"""What waits for an endpoint: whether there is any, how much to let out, and how long to have the rest wait."""

from __future__ import annotations

import datetime as dt
import uuid

from django.db import connection
from django.db.models import Avg, Exists, Max, OuterRef

from jobs.models import Job
from jobs.postponing import bring_forward, postpone
from notify.models import WebhookAttempt, WebhookEndpoint
from notify.querysets import DELIVERY_TYPE

RECENT = 10
"""Attempts that an endpoint's pace is taken from."""

SHARE = 0.8
"""Of the time that a place is taken: the next delivery comes a little early rather than late."""

LATER = dt.timedelta(seconds=30)
"""For how long the others are held back when a few, the oldest, are let out."""

_UNKNOWN = dt.timedelta(milliseconds=10)

_AGE = """
SELECT statement_timestamp() - greatest(%s, (
    SELECT max(created_at) FROM audit_entries WHERE target = %s AND action IN ('job.repeat', 'job.retry')
))
"""


def waits(endpoint_id: int, *, besides: uuid.UUID | None = None) -> bool:
    """Whether a delivery waits for it: in the queue, or in the hands of a worker that has not had its answer.

    One that has failed and has its next try before it does not count, nor does the job ``besides``.
    """
    of_it = Job.objects.filter(type=DELIVERY_TYPE, ref_id=str(endpoint_id))
    if besides is not None:
        of_it = of_it.exclude(pk=besides)
    if of_it.waiting().exists():
        return True
    # Workers write in batches what has come of their jobs: those of which an attempt tells that are done.
    answered = WebhookAttempt.objects.filter(
        job_id=OuterRef("pk"),
        verdict__in=[
            WebhookAttempt.Verdict.COMPLETED,
            WebhookAttempt.Verdict.PERMANENT,
        ],
    )
    return of_it.running().exclude(Exists(answered)).exists()


def age(job_id: uuid.UUID, enqueued_at: dt.datetime) -> dt.timedelta:
    """How long ago somebody last wanted it delivered: when it was enqueued, or resent."""
    with connection.cursor() as cursor:
        cursor.execute(_AGE, [enqueued_at, f"job:{job_id}"])
        (found,) = cursor.fetchone()
    waited: dt.timedelta = found
    return waited


def newest_attempt(endpoint_id: int) -> int:
    """The id of its newest attempt; 0 where there is none."""
    newest = WebhookAttempt.objects.filter(endpoint=endpoint_id).aggregate(
        newest=Max("id")
    )
    return newest["newest"] or 0


def spacing(endpoint: WebhookEndpoint) -> dt.timedelta:
    """From one delivery to the next, so that each comes about when a place is free."""
    recent = (
        WebhookAttempt.objects.filter(endpoint=endpoint, duration__isnull=False)
        .order_by("-id")
        .values("duration")[:RECENT]
    )
    mean = recent.aggregate(mean=Avg("duration"))["mean"]
    taken: dt.timedelta = _UNKNOWN if mean is None else mean
    return taken * SHARE / endpoint.max_in_flight


def release(endpoint: WebhookEndpoint, count: int) -> int:
    """Let out the ``count`` oldest that wait, in the caller's transaction, and have what else is due wait for its turn.

    Returns how many have come forward by that.
    """
    postpone(DELIVERY_TYPE, str(endpoint.pk), delay=LATER, spacing=spacing(endpoint))
    return bring(endpoint, count)


def bring(endpoint: WebhookEndpoint, count: int) -> int:
    """Let out the ``count`` oldest that wait; returns how many have come forward by that."""
    return bring_forward(DELIVERY_TYPE, str(endpoint.pk), count=count)


def release_all(endpoint: WebhookEndpoint) -> int:
    """Let out what waits, the oldest first, at the endpoint's pace; see :func:`release`."""
    return bring_forward(DELIVERY_TYPE, str(endpoint.pk), spacing=spacing(endpoint))
