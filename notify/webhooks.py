"""The notifier that programs read: one job for each endpoint that has the event's topic."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass

from django.conf import settings
from django.db.models.functions import Now

from jobs.enqueue import NewJob, enqueue_many
from notify import superseding, topics
from notify.event import Event
from notify.models import WebhookEndpoint
from notify.querysets import DELIVERY_TYPE

JOB_TYPE = DELIVERY_TYPE


@dataclass(frozen=True, kw_only=True)
class DeliverPayload:
    """What the job keeps: ``body`` is the very text whose UTF-8 bytes every attempt sends and signs.

    URL and secret are not in it. They are read when it is sent, so that a mended endpoint gets what is waiting.
    ``subject`` is what the event is about, where a later one about the same supersedes it.
    """

    endpoint_id: int
    topic: str
    body: str
    subject: str = ""


def send(event: Event) -> int:
    """Enqueue the event's deliveries in the caller's transaction; return how many.

    While ``NOTIFY_WEBHOOK_ENABLED`` is false, and for a topic that no endpoint has, not one row is written. A job's
    ``ref_id`` is its endpoint's id. What waits to be sent about the same thing is superseded.
    """
    if not settings.NOTIFY_WEBHOOK_ENABLED or not topics.may_be_webhook(event.topic):
        return 0
    topic = topics.topic(event.topic)
    subject = superseding.subject_of(topic, event.data)
    endpoints = list(
        WebhookEndpoint.objects.for_topic(event.topic)
        .order_by("pk")
        .annotate(now=Now())
        .values_list("pk", "now", "breaker_until")
    )
    deliveries = [
        NewJob(
            type=JOB_TYPE,
            payload=DeliverPayload(
                endpoint_id=endpoint_id,
                topic=event.topic,
                body=body_of(event, created_at=now),
                subject=subject,
            ),
            ref_id=str(endpoint_id),
            # Behind what waits already for an endpoint that does not fare well.
            run_at=until if until is not None and until > now else None,
            max_attempts=settings.NOTIFY_WEBHOOK_MAX_ATTEMPTS,
        )
        for endpoint_id, now, until in endpoints
    ]
    if not deliveries:
        return 0
    job_ids = enqueue_many(deliveries)
    for (endpoint_id, *_), job_id in zip(endpoints, job_ids, strict=True):
        superseding.supersede(endpoint_id, topic=topic, subject=subject, by=job_id)
    return len(job_ids)


def body_of(event: Event, *, created_at: dt.datetime) -> str:
    """The JSON object that receivers get, as text."""
    return json.dumps(
        {
            "topic": event.topic,
            "title": event.title,
            "body": event.body,
            "data": event.data,
            "created_at": created_at.astimezone(dt.UTC).isoformat(),
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )
