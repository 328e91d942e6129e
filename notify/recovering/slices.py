"""The job that sends one slice of a recovery, and enqueues the next.

All that a slice does is one transaction with its job's completion: a worker that is killed in it has done nothing, and
one that is killed after it has left the next job.
"""

from __future__ import annotations

import datetime as dt
import logging
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import F
from django.db.models.functions import Now

from jobs.context import JobContext
from jobs.registry import job_handler
from notify import standing, topics
from notify.dispatch import Event, dispatch
from notify.events import LogEvent
from notify.links import admin_page
from notify.models import WebhookDelivery, WebhookEndpoint, WebhookRecovery
from notify.models.endpoint import REASON_MAX_LENGTH
from notify.recipients import owner_or_admins
from notify.recovering import RECOVERY_TYPE
from notify.recovering.steering import enqueue_slice
from notify.resending import resend

SLICE_SECONDS = 5
"""A slice is what the pace allows in this time, and at least one delivery."""

LOOK_AGAIN = dt.timedelta(seconds=30)
"""How long it waits for an endpoint that takes nothing."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RecoverPayload:
    recovery_id: int


@job_handler(RECOVERY_TYPE, queue="webhooks", atomic=True, keep_completed=False)
def recover(context: JobContext, payload: RecoverPayload) -> None:
    """Resend the next deliveries of the recovery, unless it was paused, cancelled or given to another job.

    While the endpoint or all webhooks are switched off, or its breaker is not closed, nothing is resent. Where nothing else
    is there to try with whether the receiver is well again, one delivery is.
    """
    recovery = (
        WebhookRecovery.objects.select_for_update(of=("self",))
        .select_related("endpoint")
        .annotate(now=Now())
        .filter(
            pk=payload.recovery_id,
            job_id=context.job_id,
            state=WebhookRecovery.State.RUNNING,
        )
        .first()
    )
    if recovery is None:
        return
    size = max(1, recovery.per_minute * SLICE_SECONDS // 60)
    pause = dt.timedelta(minutes=1) * size / recovery.per_minute
    reason = standing.why_it_waits(recovery.endpoint)
    if reason:
        size, pause = int(_may_try(recovery.endpoint)), LOOK_AGAIN
    sent = _send(recovery, size) if size else True
    if not sent:
        _finish(recovery)
        return
    WebhookRecovery.objects.filter(pk=recovery.pk).update(
        reason=reason[:REASON_MAX_LENGTH], updated_at=Now()
    )
    enqueue_slice(recovery, run_at=recovery.now + pause)


def _send(recovery: WebhookRecovery, size: int) -> bool:
    """Resend so many behind the cursor, and move that; False where there are no more."""
    died = WebhookDelivery.objects.of(recovery.endpoint)
    died = died.died(since=recovery.since, until=recovery.until)
    if recovery.cursor is not None:
        died = died.filter(pk__gt=recovery.cursor)
    ids = list(died.values_list("pk", flat=True)[:size])
    if not ids:
        return False
    result = resend(ids, actor=recovery.requested_by)
    WebhookRecovery.objects.filter(pk=recovery.pk).update(
        cursor=ids[-1],
        resent=F("resent") + len(result.done),
        skipped=F("skipped") + len(result.skipped),
    )
    return True


def _may_try(endpoint: WebhookEndpoint) -> bool:
    """Whether a breaker that is not closed has nothing to try with."""
    if not (endpoint.enabled and settings.NOTIFY_WEBHOOK_ENABLED):
        return False
    return not WebhookDelivery.objects.of(endpoint).live().exists()


def _finish(recovery: WebhookRecovery) -> None:
    WebhookRecovery.objects.filter(pk=recovery.pk).update(
        state=WebhookRecovery.State.FINISHED, reason="", updated_at=Now()
    )
    recovery.refresh_from_db()
    facts = {
        "recovery": recovery.pk,
        "endpoint": recovery.endpoint.name,
        "resent": recovery.resent,
        "skipped": recovery.skipped,
    }
    skipped = f", {recovery.skipped:,} skipped" if recovery.skipped else ""
    users = get_user_model()._default_manager
    dispatch(
        Event(
            topic=topics.RECOVERED.name,
            recipients=owner_or_admins(
                users.filter(username=recovery.requested_by).first()
            ),
            title=f"Recovery of {recovery.endpoint.name} finished: {recovery.resent:,} resent{skipped}",
            body="Each has all its attempts before it again; those that fail are told as any other.",
            data={**facts, "url": admin_page(recovery)},
        )
    )
    log.info(LogEvent.RECOVERED, extra=facts)
