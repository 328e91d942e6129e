"""The job that delivers one webhook to one endpoint."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.utils import timezone

from jobs.context import JobContext
from jobs.exceptions import Permanent, Snooze
from jobs.registry import job_handler
from notify import attempts, sending
from notify.delivery import Verdict
from notify.exceptions import DeliveryFailed
from notify.models import WebhookAttempt, WebhookEndpoint
from notify.webhooks import JOB_TYPE, DeliverPayload

LOOK_AGAIN = dt.timedelta(minutes=1)
"""How long a delivery waits before it looks whether it may be sent."""


@job_handler(JOB_TYPE, queue="webhooks", max_attempts=6)
def deliver(context: JobContext, payload: DeliverPayload) -> None:
    """POST the payload once, to the endpoint as it is now.

    Raises :class:`~notify.exceptions.DeliveryFailed` where another try may help and
    :class:`~jobs.exceptions.Permanent` where none will. While the endpoint or all webhooks are switched off, which
    may be for a moment or in this process only, the delivery waits and uses up no attempt. Where it is
    too old by then, or the endpoint is gone, the job completes and leaves an attempt's row that says so.
    """
    context.check_lease()
    endpoint, attempt = _begin(context, payload)
    if attempt is None or endpoint is None:
        reason = _reason_to_wait(endpoint)
        if endpoint is not None and not _is_stale(context):
            raise Snooze(LOOK_AGAIN, f"waits: {reason}")
        sending.skip(
            endpoint,
            job_id=context.job_id,
            number=context.attempt,
            topic=payload.topic,
            cause=reason,
        )
        return
    judgement = sending.send(attempt, event_id=context.job_id, body=payload.body)
    if judgement.verdict is Verdict.COMPLETED:
        return
    message = f"{endpoint.name} ({endpoint.target}): {judgement.cause}"
    if judgement.verdict is Verdict.PERMANENT:
        raise Permanent(message)
    raise DeliveryFailed(message, retry_after=judgement.retry_after)


def _begin(
    context: JobContext, payload: DeliverPayload
) -> tuple[WebhookEndpoint | None, WebhookAttempt | None]:
    """The endpoint, and the attempt's row where it may be sent now."""
    if not settings.NOTIFY_WEBHOOK_ENABLED:
        return WebhookEndpoint.objects.filter(pk=payload.endpoint_id).first(), None
    return attempts.open_attempt(
        payload.endpoint_id,
        job_id=context.job_id,
        number=context.attempt,
        topic=payload.topic,
    )


def _reason_to_wait(endpoint: WebhookEndpoint | None) -> str:
    """Why there is no attempt."""
    if endpoint is None:
        return "the endpoint was deleted"
    if not endpoint.enabled:
        return "the endpoint is disabled"
    return "NOTIFY_WEBHOOK_ENABLED is false"


def _is_stale(context: JobContext) -> bool:
    """Whether the event is older than what the queue remembers of finished jobs: news no more."""
    age = timezone.now() - context.enqueued_at
    return age > settings.JOBS_JOB_PURGE_COMPLETED_RETENTION
