"""The job that delivers one webhook to one endpoint."""

from __future__ import annotations

import datetime as dt
import time

from django.conf import settings

from jobs.context import JobContext
from jobs.exceptions import Permanent, Snooze
from jobs.registry import job_handler
from notify import attempts, sending
from notify.delivery import Judgement
from notify.exceptions import DeliveryFailed
from notify.health import backlog, gate, settling
from notify.health.breaker import Fate
from notify.health.lanes import Lanes
from notify.models import WebhookAttempt, WebhookEndpoint
from notify.webhooks import JOB_TYPE, DeliverPayload

_NEW = dt.timedelta(0)
_lanes = Lanes(last_took=attempts.last_took)


@job_handler(JOB_TYPE, queue="webhooks", max_attempts=6)
def deliver(context: JobContext, payload: DeliverPayload) -> None:
    """POST the payload once, to the endpoint as it is now.

    Raises :class:`~notify.exceptions.DeliveryFailed` where another try may help and
    :class:`~jobs.exceptions.Permanent` where none will. While the endpoint has no place free, fails as a whole, or is
    switched off, the delivery waits and uses up no attempt. Where nobody wants it any more when it could be sent, the
    job completes and leaves an attempt's row that says so.
    """
    context.check_lease()
    with _lanes.lane(payload.endpoint_id) as lane:
        if not lane.admitted:
            raise Snooze(gate.turn_away_at_lane(lane), "waits: in line")
        endpoint, attempt = _begin(context, payload)
        if attempt is None or endpoint is None:
            _not_now(context, payload, endpoint)
            return
        began = time.monotonic()
        judgement = sending.send(attempt, event_id=context.job_id, body=payload.body)
        others_wait = _lanes.learn(payload.endpoint_id, time.monotonic() - began)
    if others_wait:
        gate.let_in(endpoint)
    _conclude(endpoint, attempt, judgement)


def _conclude(
    endpoint: WebhookEndpoint, attempt: WebhookAttempt, judgement: Judgement
) -> None:
    """End the job as the attempt's end says."""
    settlement = settling.settle(attempt, judgement)
    if settlement.fate is Fate.DONE:
        return
    message = f"{endpoint.name} ({endpoint.target}): {judgement.cause}"
    if settlement.fate is Fate.WAIT:
        raise Snooze(settlement.wait, f"waits: {message}")
    if settlement.fate is Fate.DIE:
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


def _not_now(
    context: JobContext, payload: DeliverPayload, endpoint: WebhookEndpoint | None
) -> None:
    """Have it wait, or end it: what is older than the queue remembers of finished jobs is news no more."""
    reason = gate.reason_to_wait(endpoint)
    age = backlog.age(context.job_id, context.enqueued_at) if reason else _NEW
    stale = age > settings.JOBS_JOB_PURGE_COMPLETED_RETENTION
    if endpoint is not None and not stale:
        _lanes.turned_away(payload.endpoint_id)
        raise Snooze(gate.turn_away(endpoint), f"waits: {reason or 'no place free'}")
    if endpoint is not None and gate.is_kept_back(endpoint):
        raise Permanent(
            f"{endpoint.name} ({endpoint.target}): not sent for {age.days} days: {reason}"
        )
    sending.skip(
        endpoint,
        job_id=context.job_id,
        number=context.attempt,
        topic=payload.topic,
        cause=reason,
    )
