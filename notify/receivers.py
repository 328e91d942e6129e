"""What this app makes of the queue's news. Connected in :meth:`notify.apps.NotifyConfig.ready`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from jobs.models import Job
from notify import audit, links, topics
from notify.dispatch import Event, Group, dispatch
from notify.events import LogEvent
from notify.models import WebhookEndpoint
from notify.recipients import admins
from notify.recovering import RECOVERY_TYPE, steering
from notify.webhooks import JOB_TYPE

log = logging.getLogger(__name__)


def on_job_dead(*, job: Job, error: str, **_: Any) -> None:
    """A delivery was given up: one audit row, and a notification to every admin, who has one for many.

    It goes to the inbox only; as a webhook it could die in turn, and be told again.
    """
    if job.type == RECOVERY_TYPE:
        steering.stop(job.pk, error)
    if job.type != JOB_TYPE:
        return
    endpoint = _endpoint_of(job)
    name = endpoint.name if endpoint else "a deleted endpoint"
    topic = str(job.payload.get("topic", ""))
    facts = {
        "job_id": str(job.pk),
        "endpoint": name,
        "event_topic": topic,
        "attempts": job.attempts,
    }
    audit.record(
        audit.SYSTEM,
        topics.DEAD_LETTER.name,
        target=f"job:{job.pk}",
        data={**facts, "error": error},
    )
    dispatch(
        Event(
            topic=topics.DEAD_LETTER.name,
            recipients=admins(),
            title=f"Webhook to {name} not delivered: {topic}",
            body=error,
            data={**facts, "url": links.delivery_page(job.pk)},
            group=Group(
                key=f"{topics.DEAD_LETTER.name}:{endpoint.pk if endpoint else 'deleted'}",
                window=settings.NOTIFY_WEBHOOK_DEAD_LETTER_WINDOW,
                title=f"webhooks to {name} not delivered",
                url=links.dead_deliveries(job.ref_id if endpoint else None),
            ),
        )
    )
    log.error(LogEvent.DEAD_LETTER, extra={**facts, "error": error})


def on_operator_acted(
    *, actor: str, action: str, target: str, data: Mapping[str, Any], **_: Any
) -> None:
    """An operator changed a job or a runner: one audit row."""
    audit.record(actor, action, target=target, data=data)


def _endpoint_of(job: Job) -> WebhookEndpoint | None:
    # Any number or text, where the job was put into the table by hand.
    endpoint_id = job.payload.get("endpoint_id")
    if not isinstance(endpoint_id, int):
        return None
    return WebhookEndpoint.objects.filter(pk=endpoint_id).first()
