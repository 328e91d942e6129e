"""The job that delivers one webhook to one endpoint."""

from __future__ import annotations

from django.conf import settings

from jobs.context import JobContext
from jobs.exceptions import Permanent
from jobs.registry import job_handler
from notify import sending
from notify.delivery import Verdict
from notify.exceptions import DeliveryFailed
from notify.models import WebhookEndpoint
from notify.webhooks import JOB_TYPE, DeliverPayload


@job_handler(JOB_TYPE, queue="webhooks", max_attempts=6)
def deliver(context: JobContext, payload: DeliverPayload) -> None:
    """POST the payload once, to the endpoint as it is now.

    Raises :class:`~notify.exceptions.DeliveryFailed` where another try may help and
    :class:`~jobs.exceptions.Permanent` where none will. Where nothing is to be sent any more, because the endpoint
    is gone or switched off, the job completes and leaves an attempt's row that says so.
    """
    endpoint = WebhookEndpoint.objects.filter(pk=payload.endpoint_id).first()
    reason = _reason_to_skip(endpoint)
    if endpoint is None or reason:
        sending.skip(
            endpoint,
            job_id=context.job_id,
            number=context.attempt,
            topic=payload.topic,
            cause=reason,
        )
        return
    context.check_lease()
    _, judgement = sending.send(
        endpoint,
        event_id=context.job_id,
        job_id=context.job_id,
        number=context.attempt,
        topic=payload.topic,
        body=payload.body,
    )
    if judgement.verdict is Verdict.COMPLETED:
        return
    message = f"{endpoint.name} ({endpoint.target}): {judgement.cause}"
    if judgement.verdict is Verdict.PERMANENT:
        raise Permanent(message)
    raise DeliveryFailed(message, retry_after=judgement.retry_after)


def _reason_to_skip(endpoint: WebhookEndpoint | None) -> str:
    if endpoint is None:
        return "the endpoint was deleted"
    if not endpoint.enabled:
        return "the endpoint is disabled"
    if not settings.NOTIFY_WEBHOOK_ENABLED:
        return "NOTIFY_WEBHOOK_ENABLED is false"
    return ""
