"""One attempt at one delivery, from the row that announces it to the row that says how it ended."""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
import time
import uuid
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from jobs.identifiers import uuid7
from jobs.redaction import redact
from notify import delivery, signing, topics
from notify.delivery import Judgement, Verdict
from notify.events import LogEvent
from notify.exceptions import EncryptionError
from notify.exchange import Exchange
from notify.models import WebhookAttempt, WebhookEndpoint

_OLD_ROWS_TAKEN = 10
_FOUND_OUT = ("verdict", "status", "cause", "duration", "peer", "excerpt")
# All control characters but tab and line feed.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

_TOO_SHORT_TO_HIDE = 3
"""Characters: what is as short as "/" would be hidden in every answer and hides nothing."""

log = logging.getLogger(__name__)


def send(
    endpoint: WebhookEndpoint,
    *,
    event_id: uuid.UUID,
    job_id: uuid.UUID | None,
    number: int,
    topic: str,
    body: str,
) -> tuple[WebhookAttempt, Judgement]:
    """Sign ``body`` and POST it once; return the attempt's row, closed, and what becomes of the delivery.

    Must not be called inside a transaction: the row has to be there while the request is under way.
    """
    attempt = _open(endpoint, job_id=job_id, number=number, topic=topic)
    try:
        secret = endpoint.signing_secret()
    except EncryptionError as error:
        # Whoever mends the keys wants what is waiting to be delivered.
        judgement = Judgement(verdict=Verdict.RETRY, cause=str(error))
        _close(attempt, judgement, Exchange(duration=dt.timedelta(0)))
        return attempt, judgement
    # Not at the top: it loads requests, 5 MiB that a worker without deliveries need not hold.
    from notify import outbound

    content = body.encode()
    exchange = outbound.post(
        endpoint.url,
        body=content,
        headers=signing.headers(
            secret=secret,
            event_id=event_id,
            timestamp=int(time.time()),
            topic=topic,
            body=content,
        ),
        timeout=settings.NOTIFY_WEBHOOK_TIMEOUT,
        allowed=settings.NOTIFY_WEBHOOK_ALLOW_NETWORKS,
    )
    judgement = delivery.judge(exchange, now=timezone.now())
    _close(attempt, judgement, exchange)
    return attempt, judgement


def send_test(endpoint: WebhookEndpoint) -> tuple[WebhookAttempt, Judgement]:
    """Send a signed ``webhook.test`` event now, also to an endpoint that is disabled; see :func:`send`."""
    body = {
        "topic": topics.TEST.name,
        "title": topics.TEST.title,
        "body": "An operator asked for this event, to see whether it arrives.",
        "data": {"endpoint": endpoint.name},
        "created_at": timezone.now().isoformat(),
    }
    return send(
        endpoint,
        event_id=uuid7(),
        job_id=None,
        number=1,
        topic=topics.TEST.name,
        body=json.dumps(body, ensure_ascii=False, separators=(",", ":")),
    )


def describe(attempt: WebhookAttempt) -> str:
    """What came of an attempt, as one sentence."""
    took = (
        ""
        if attempt.duration is None
        else f" in {attempt.duration.total_seconds() * 1000:.0f} ms"
    )
    if attempt.verdict == WebhookAttempt.Verdict.COMPLETED:
        return f"Delivered: HTTP {attempt.status}{took}."
    return f"Not delivered{took}: {attempt.cause}."


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
    log.info(LogEvent.SKIPPED, extra={"job_id": job_id, "topic": topic, "cause": cause})


def remove_old_attempts() -> None:
    """Take a few rows that are older than the jobs that they explain can be.

    Done with each attempt, it keeps the table from growing without end.
    """
    oldest = WebhookAttempt.objects.oldest(_OLD_ROWS_TAKEN)
    old = oldest.filter(started_at__lt=Now() - settings.JOBS_JOB_PURGE_DEAD_RETENTION)
    if not old.exists():
        return
    with transaction.atomic():
        # Two workers that took the same rows in different orders would lock each other out.
        taken = list(
            old.select_for_update(skip_locked=True).values_list("pk", flat=True)
        )
        WebhookAttempt.objects.filter(pk__in=taken).delete()


def _open(
    endpoint: WebhookEndpoint, *, job_id: uuid.UUID | None, number: int, topic: str
) -> WebhookAttempt:
    remove_old_attempts()
    return WebhookAttempt.objects.create(
        endpoint=endpoint, job_id=job_id, topic=topic, number=number
    )


def _close(attempt: WebhookAttempt, judgement: Judgement, exchange: Exchange) -> None:
    attempt.verdict = WebhookAttempt.Verdict(judgement.verdict)
    attempt.status = exchange.status
    attempt.cause = judgement.cause
    attempt.duration = exchange.duration
    attempt.peer = exchange.peer
    attempt.excerpt = _readable(exchange.excerpt, attempt.endpoint)
    # An update: that the row is old enough to have been taken away meanwhile is no failure.
    WebhookAttempt.objects.filter(pk=attempt.pk).update(
        finished_at=Now(),
        **{name: getattr(attempt, name) for name in _FOUND_OUT},
    )
    del attempt.finished_at  # read from the database when it is next asked for
    _report(attempt, judgement)


def _report(attempt: WebhookAttempt, judgement: Judgement) -> None:
    endpoint = attempt.endpoint
    facts = {
        "job_id": attempt.job_id,
        "endpoint": endpoint.name if endpoint else None,
        "target": endpoint.target if endpoint else None,
        "topic": attempt.topic,
        "attempt": attempt.number,
        "status": attempt.status,
        "duration": attempt.duration,
    }
    if judgement.verdict is Verdict.COMPLETED:
        log.info(LogEvent.DELIVERED, extra=facts)
    else:
        log.warning(
            LogEvent.ATTEMPT_FAILED,
            extra={
                **facts,
                "verdict": judgement.verdict.value,
                "cause": judgement.cause,
            },
        )


def _readable(excerpt: bytes, endpoint: WebhookEndpoint | None) -> str:
    """The receiver's words as they can be stored and shown: no control characters, no credentials.

    Many receivers repeat what they were asked for, and the path or the query may be the credential.
    """
    text = redact(
        _CONTROL.sub("\N{REPLACEMENT CHARACTER}", excerpt.decode(errors="replace"))
    )
    if endpoint is None:
        return text
    url = urlsplit(endpoint.url)
    hidden = {endpoint.url, f"{url.path}?{url.query}", url.path, url.query}
    for part in sorted(hidden, key=len, reverse=True):
        if len(part) > _TOO_SHORT_TO_HIDE:
            text = text.replace(part, "***")
    return text
