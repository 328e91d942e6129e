"""The notifier that programs read: one job for each endpoint that has the event's topic."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass

from django.conf import settings
from django.db.models.functions import Now

from jobs.enqueue import NewJob, enqueue_many
from notify import topics
from notify.event import Event
from notify.models import WebhookEndpoint
from notify.querysets import DELIVERY_TYPE

JOB_TYPE = DELIVERY_TYPE


@dataclass(frozen=True, kw_only=True)
class DeliverPayload:
    """What the job keeps: ``body`` is the very text whose UTF-8 bytes every attempt sends and signs.

    URL and secret are not in it. They are read when it is sent, so that a mended endpoint gets what is waiting.
    """

    endpoint_id: int
    topic: str
    body: str


def send(event: Event) -> int:
    """Enqueue the event's deliveries in the caller's transaction; return how many.

    While ``NOTIFY_WEBHOOK_ENABLED`` is false, and for a topic that no endpoint has, not one row is written. A job's
    ``ref_id`` is its endpoint's id.
    """
    if not settings.NOTIFY_WEBHOOK_ENABLED or not topics.may_be_webhook(event.topic):
        return 0
    endpoints = (
        WebhookEndpoint.objects.for_topic(event.topic)
        .order_by("pk")
        .annotate(now=Now())
        .values_list("pk", "now")
    )
    deliveries = [
        NewJob(
            type=JOB_TYPE,
            payload=DeliverPayload(
                endpoint_id=endpoint_id,
                topic=event.topic,
                body=body_of(event, created_at=now),
            ),
            ref_id=str(endpoint_id),
            max_attempts=settings.NOTIFY_WEBHOOK_MAX_ATTEMPTS,
        )
        for endpoint_id, now in endpoints
    ]
    return len(enqueue_many(deliveries)) if deliveries else 0


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
