"""One attempt at one delivery: signed, sent, judged, and the row and the log told how it ended."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import json
import logging
import time
import uuid
from collections.abc import Mapping, Sequence

from django.conf import settings
from django.utils import timezone

from jobs import concurrency
from jobs.identifiers import uuid7
from notify import attempts, delivery, excerpts, overlap, signing, topics
from notify.delivery import Judgement, Verdict
from notify.events import LogEvent
from notify.exceptions import EncryptionError
from notify.exchange import Exchange
from notify.explanations import explain
from notify.health import settling
from notify.models import WebhookAttempt, WebhookEndpoint

log = logging.getLogger(__name__)


def send(attempt: WebhookAttempt, *, event_id: uuid.UUID, body: str) -> Judgement:
    """Sign ``body`` and POST it to the attempt's endpoint; return what becomes of the delivery.

    ``attempt`` is closed then; see :func:`notify.attempts.open_attempt`. What it says about the endpoint is for
    :func:`notify.health.settling.settle`, which a delivery calls next. It is one request, or, while the endpoint's
    secret is being changed, up to :data:`notify.overlap.MOST_REQUESTS`, each with a row of its own.
    """
    _, judgement = _deliver(attempt, event_id=event_id, body=body)
    return judgement


def _deliver(
    attempt: WebhookAttempt,
    *,
    event_id: uuid.UUID,
    body: str,
    secret: str | None = None,
) -> tuple[WebhookAttempt, Judgement]:
    """See :func:`send`; the row that counts, too."""
    try:
        secrets = [secret] if secret else overlap.secrets_for(attempt)
        extra = _endpoint(attempt).own_headers()
    except EncryptionError as error:
        # Whoever mends the keys wants what is waiting to be delivered.
        judgement = Judgement(verdict=Verdict.RETRY, cause=str(error))
        keep = settling.is_due(attempt, judgement)
        _close(attempt, judgement, Exchange(duration=dt.timedelta(0)), keep_place=keep)
        return attempt, judgement
    post = functools.partial(
        _post, event_id=event_id, content=body.encode(), extra=extra
    )
    if secret:
        judgement, exchange = post(attempt, secrets)
        _close(attempt, judgement, exchange)
        return attempt, judgement
    sent = overlap.send(attempt, secrets, post)
    *repeated, last = sent
    keep = settling.is_due(attempt, last.judgement)
    _close(
        last.attempt,
        last.judgement,
        last.exchange,
        keep_place=keep,
        may_wait=not keep and not repeated and _has_time(attempt),
    )
    for one in reversed(repeated):
        _close(one.attempt, one.judgement, one.exchange, repeated=True, keep_place=keep)
    overlap.conclude(sent)
    return last.attempt, last.judgement


def _has_time(attempt: WebhookAttempt) -> bool:
    """Whether its end may be written a moment later: nobody looks at it, nor needs its place, at once."""
    endpoint = _endpoint(attempt)
    changing = bool(endpoint.staged_secret or endpoint.retiring_secret)
    # Each thread has a place of its own then, and takes none of another.
    roomy = endpoint.max_in_flight >= concurrency.threads()
    return attempt.job_id is not None and roomy and not changing


def _post(
    attempt: WebhookAttempt,
    secrets: Sequence[str],
    *,
    event_id: uuid.UUID,
    content: bytes,
    extra: Mapping[str, str],
) -> tuple[Judgement, Exchange]:
    endpoint = _endpoint(attempt)
    # Not at the top: it loads requests, 5 MiB that a worker without deliveries need not hold.
    from notify import outbound

    exchange = outbound.post(
        endpoint.url,
        body=content,
        headers=signing.headers(
            secrets,
            event_id=event_id,
            timestamp=int(time.time()),
            topic=attempt.topic,
            body=content,
        ),
        extra=extra,
        timeout=endpoint.effective_timeout,
        allowed=settings.NOTIFY_WEBHOOK_ALLOW_NETWORKS,
        ca_bundle=settings.NOTIFY_WEBHOOK_CA_BUNDLE,
    )
    judgement = delivery.judge(
        exchange,
        now=timezone.now(),
        ask_again=settings.NOTIFY_WEBHOOK_RETRY_STATUSES,
    )
    excerpt = excerpts.without_credentials(
        exchange.excerpt, url=endpoint.url, headers=extra, secrets=secrets
    )
    return judgement, dataclasses.replace(exchange, excerpt=excerpt)


def _endpoint(attempt: WebhookAttempt) -> WebhookEndpoint:
    endpoint = attempt.endpoint
    assert endpoint is not None  # noqa: S101 - it was opened for one
    return endpoint


def send_test(
    endpoint: WebhookEndpoint, *, secret: str | None = None
) -> tuple[WebhookAttempt, Judgement]:
    """Send a signed ``webhook.test`` event now, also to an endpoint that is disabled; see :func:`send`.

    With ``secret`` it is signed with that one alone: a probe, whether the receiver has it.
    """
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
    return _deliver(attempt, event_id=uuid7(), body=text, secret=secret)


def describe(attempt: WebhookAttempt) -> str:
    """What came of an attempt, as one sentence, and what to do about it."""
    took = (
        ""
        if attempt.duration is None
        else f" in {attempt.duration.total_seconds() * 1000:.0f} ms"
    )
    if attempt.verdict == WebhookAttempt.Verdict.COMPLETED:
        return f"Delivered: HTTP {attempt.status}{took}."
    return f"Not delivered{took}: {attempt.cause}. {explain(attempt).to_do}"


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


def _close(
    attempt: WebhookAttempt,
    judgement: Judgement,
    exchange: Exchange,
    *,
    repeated: bool = False,
    keep_place: bool = False,
    may_wait: bool = False,
) -> None:
    attempt.verdict = (
        WebhookAttempt.Verdict.REPEATED
        if repeated
        else WebhookAttempt.Verdict(judgement.verdict)
    )
    attempt.status = exchange.status
    attempt.cause = judgement.cause
    attempt.failure = exchange.failure or ""
    attempt.duration = exchange.duration
    for phase in dataclasses.fields(exchange.phases):
        setattr(attempt, phase.name, getattr(exchange.phases, phase.name))
    attempt.peer = exchange.peer
    attempt.excerpt = excerpts.readable(exchange.excerpt)
    attempts.close_attempt(attempt, keep_place=keep_place, may_wait=may_wait)
    _report(attempt, judgement)


def _report(attempt: WebhookAttempt, judgement: Judgement) -> None:
    endpoint = attempt.endpoint
    # Its row says as much, and no line is made for each that goes well.
    delivered = judgement.verdict is Verdict.COMPLETED
    if delivered and not log.isEnabledFor(logging.DEBUG):
        return
    facts = {
        "job_id": attempt.job_id,
        "endpoint": endpoint.name if endpoint else None,
        "target": endpoint.target if endpoint else None,
        "topic": attempt.topic,
        "attempt": attempt.number,
        "status": attempt.status,
        "duration": attempt.duration,
    }
    if delivered:
        log.debug(LogEvent.DELIVERED, extra=facts)
    else:
        log.warning(
            LogEvent.ATTEMPT_FAILED,
            extra={
                **facts,
                "verdict": attempt.verdict,
                "cause": judgement.cause,
            },
        )
