"""One attempt at one delivery: signed, sent, judged, and the row and the log told how it ended."""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
import time
import uuid
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from jobs.identifiers import uuid7
from jobs.redaction import redact
from notify import attempts, delivery, signing, topics
from notify.delivery import Judgement, Verdict
from notify.events import LogEvent
from notify.exceptions import EncryptionError
from notify.exchange import Exchange
from notify.models import WebhookAttempt, WebhookEndpoint

# All control characters but tab and line feed.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

_TOO_SHORT_TO_HIDE = 3
"""Characters: what is as short as "/" would be hidden in every answer and hides nothing."""

log = logging.getLogger(__name__)


def send(attempt: WebhookAttempt, *, event_id: uuid.UUID, body: str) -> Judgement:
    """Sign ``body`` and POST it once to the attempt's endpoint; return what becomes of the delivery.

    ``attempt`` is closed then; see :func:`notify.attempts.open_attempt`.
    """
    endpoint = attempt.endpoint
    assert endpoint is not None  # noqa: S101 - it was opened for one
    try:
        secret = endpoint.signing_secret()
    except EncryptionError as error:
        # Whoever mends the keys wants what is waiting to be delivered.
        judgement = Judgement(verdict=Verdict.RETRY, cause=str(error))
        _close(attempt, judgement, Exchange(duration=dt.timedelta(0)))
        return judgement
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
            topic=attempt.topic,
            body=content,
        ),
        timeout=settings.NOTIFY_WEBHOOK_TIMEOUT,
        allowed=settings.NOTIFY_WEBHOOK_ALLOW_NETWORKS,
    )
    judgement = delivery.judge(exchange, now=timezone.now())
    _close(attempt, judgement, exchange)
    return judgement


def send_test(endpoint: WebhookEndpoint) -> tuple[WebhookAttempt, Judgement]:
    """Send a signed ``webhook.test`` event now, also to an endpoint that is disabled; see :func:`send`."""
    body = {
        "topic": topics.TEST.name,
        "title": topics.TEST.title,
        "body": "An operator asked for this event, to see whether it arrives.",
        "data": {"endpoint": endpoint.name},
        "created_at": timezone.now().isoformat(),
    }
    _, attempt = attempts.open_attempt(
        endpoint.pk,
        job_id=None,
        number=1,
        topic=topics.TEST.name,
        disabled_too=True,
    )
    if attempt is None:
        raise WebhookEndpoint.DoesNotExist(f"{endpoint.name} was deleted meanwhile")
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return attempt, send(attempt, event_id=uuid7(), body=text)


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
    attempts.skip(endpoint, job_id=job_id, number=number, topic=topic, cause=cause)
    log.info(LogEvent.SKIPPED, extra={"job_id": job_id, "topic": topic, "cause": cause})


def _close(attempt: WebhookAttempt, judgement: Judgement, exchange: Exchange) -> None:
    attempt.verdict = WebhookAttempt.Verdict(judgement.verdict)
    attempt.status = exchange.status
    attempt.cause = judgement.cause
    attempt.duration = exchange.duration
    attempt.peer = exchange.peer
    attempt.excerpt = _readable(exchange.excerpt, attempt.endpoint)
    attempts.close_attempt(attempt)
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
