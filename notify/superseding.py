"""A later event about the same thing takes the place of an older one that has not gone out."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from typing import Any

from django.db.models.functions import Now

from jobs.models import Job, Status
from notify.events import LogEvent
from notify.models import WebhookAttempt
from notify.querysets import DELIVERY_TYPE
from notify.topics import Topic

SUBJECT_MAX_LENGTH = 200
"""Characters: what is longer names no thing, and supersedes nothing."""

log = logging.getLogger(__name__)


def subject_of(topic: Topic, data: Mapping[str, Any]) -> str:
    """What the event is about, as text; empty where its topic has no subject, or it says none."""
    value = data.get(topic.subject) if topic.subject else None
    if value is None or isinstance(value, bool | dict | list):
        return ""
    subject = str(value)
    return subject if len(subject) <= SUBJECT_MAX_LENGTH else ""


def supersede(
    endpoint_id: int, *, topic: Topic, subject: str, by: uuid.UUID
) -> list[uuid.UUID]:
    """Cancel the older deliveries to this endpoint that wait and are about the same, in the caller's transaction.

    Each gets a row that says so and links to ``by``, the later one's job. What is under way at this moment goes out.
    """
    if not subject:
        return []
    older = list(
        Job.objects.pending()
        .filter(
            type=DELIVERY_TYPE,
            ref_id=str(endpoint_id),
            payload__topic=topic.name,
            payload__subject=subject,
            # A still later one may have come in between.
            pk__lt=by,
        )
        .select_for_update(no_key=True, skip_locked=True)
        .order_by("pk")
        .values_list("pk", "attempts")
    )
    if not older:
        return []
    cause = f"superseded by {by}"
    Job.objects.filter(pk__in=[pk for pk, _ in older]).update(
        status=Status.CANCELLED,
        completed_at=Now(),
        updated_at=Now(),
        last_error=cause,
    )
    WebhookAttempt.objects.bulk_create(
        WebhookAttempt(
            endpoint_id=endpoint_id,
            job_id=pk,
            topic=topic.name,
            number=attempts,
            finished_at=Now(),
            verdict=WebhookAttempt.Verdict.SUPERSEDED,
            cause=cause,
            superseded_by=by,
        )
        for pk, attempts in older
    )
    log.info(
        LogEvent.SUPERSEDED,
        extra={
            "topic": topic.name,
            "jobs": [str(pk) for pk, _ in older],
            "by": str(by),
        },
    )
    return [pk for pk, _ in older]
