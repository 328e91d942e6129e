"""After an attempt that says something about its endpoint: the decision, under the endpoint's lock, and its telling.

A delivery that succeeds at an endpoint that is well comes nowhere near: its own row is all that it writes.
"""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Max

from jobs.postponing import SPREAD
from notify.delivery import UNAUTHORISED, Judgement, Verdict
from notify.health import backlog, breaker, changes, places
from notify.health.breaker import Fate, Progress, Rules, Run, Standing
from notify.models import WebhookAttempt, WebhookEndpoint
from notify.models.attempt import NOT_SENT
from notify.querysets import WebhookAttemptQuerySet

RUN_LENGTH = 100
"""Attempts that a run of failures is looked for in, at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settlement:
    """What becomes of the delivery; ``wait`` is how long where it waits."""

    fate: Fate
    wait: dt.timedelta = dt.timedelta(0)


def is_due(attempt: WebhookAttempt, judgement: Judgement) -> bool:
    """Whether the attempt has to be settled: all but one that succeeded where all was well."""
    if attempt.job_id is None or attempt.endpoint is None:
        return False
    well = attempt.endpoint.breaker == WebhookEndpoint.Breaker.CLOSED
    return judgement.verdict is not Verdict.COMPLETED or not well


def settle(attempt: WebhookAttempt, judgement: Judgement) -> Settlement:
    """Decide what the attempt's end means for its endpoint, write and tell that, and free the attempt's place.

    The row of the attempt, of which ``judgement`` is the end, is closed already. For a test event nothing is decided.
    """
    if not is_due(attempt, judgement):
        return Settlement(fate=_alone(judgement))
    with transaction.atomic():
        endpoint, now = _lock(attempt.endpoint_id or 0)
        # Together with the decision: whoever finds the place free finds the breaker as it is from now on.
        places.free(attempt)
        if endpoint is None:
            return Settlement(fate=_alone(judgement))
        decision = breaker.decide(
            standing_of(endpoint),
            judgement,
            trial=attempt.trial,
            run=_run(endpoint, attempt),
            progress=_progress(endpoint, besides=attempt.job_id),
            rules=rules(),
            now=now,
        )
        changes.write(endpoint, decision, now=now)
    until = endpoint.breaker_until
    if decision.fate is not Fate.WAIT or until is None:
        return Settlement(fate=decision.fate)
    # Behind all that has not been tried: else the oldest would try each time, and if it alone is not taken, for ever.
    wait = max(until - now, dt.timedelta(0)) + SPREAD
    return Settlement(fate=decision.fate, wait=wait)


def look(endpoint: WebhookEndpoint) -> bool:
    """Take the next step of an endpoint that recovers where no attempt's end will bring it.

    Returns whether more may go out before an attempt's end brings the next one.
    """
    with transaction.atomic():
        locked, now = _lock(endpoint.pk)
        if locked is None or not locked.enabled:
            return False
        standing, progress = standing_of(locked), _progress(locked)
        step = breaker.look(standing, progress=progress, rules=rules(), now=now)
        if step is not None:
            changes.write(locked, step, now=now)
            return True
    return standing.state == breaker.State.CLOSED or (
        standing.state == breaker.State.RECOVERING and progress.used < standing.window
    )


def rules() -> Rules:
    """What the settings say."""
    return Rules(
        failures=settings.NOTIFY_WEBHOOK_BREAKER_FAILURES,
        wait=settings.NOTIFY_WEBHOOK_BREAKER_WAIT,
        longest_wait=settings.NOTIFY_WEBHOOK_BREAKER_MAX_WAIT,
        disable_after=settings.NOTIFY_WEBHOOK_DISABLE_AFTER,
    )


def standing_of(endpoint: WebhookEndpoint) -> Standing:
    """Where its breaker stands."""
    return Standing(
        state=endpoint.breaker,
        reason=endpoint.breaker_reason,
        since=endpoint.breaker_since,
        until=endpoint.breaker_until,
        tries=endpoint.breaker_tries,
        window=endpoint.window,
    )


def _alone(judgement: Judgement) -> Fate:
    """What becomes of a delivery whose endpoint decides nothing."""
    return {
        Verdict.COMPLETED: Fate.DONE,
        Verdict.RETRY: Fate.RETRY,
        Verdict.PERMANENT: Fate.DIE,
    }[judgement.verdict]


def _lock(endpoint_id: int) -> tuple[WebhookEndpoint | None, dt.datetime]:
    """The endpoint, locked against all who would decide too; and the database's time."""
    endpoint = (
        WebhookEndpoint.objects.select_for_update(no_key=True)
        .filter(pk=endpoint_id)
        .first()
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        (now,) = cursor.fetchone()
    return endpoint, now


def _run(endpoint: WebhookEndpoint, attempt: WebhookAttempt) -> Run:
    rows = list(
        _sent_to(endpoint.pk)
        .filter(finished_at__isnull=False)
        .order_by("-id")
        .values_list("verdict", "status", "job_id")[:RUN_LENGTH]
    )
    retry, permanent = WebhookAttempt.Verdict.RETRY, WebhookAttempt.Verdict.PERMANENT
    failed = _alike(rows, lambda verdict, _: verdict == retry)
    refused = _alike(
        rows,
        lambda verdict, status: verdict == permanent and status in UNAUTHORISED,
    )
    return Run(
        failures=len(failed),
        events=len(set(failed)),
        refusals=len(set(refused)),
        repeated=_is_repeated(attempt),
    )


def _is_repeated(attempt: WebhookAttempt) -> bool:
    """Whether the attempt's event had failed before, and the endpoint has taken others since."""
    before = WebhookAttempt.objects.filter(job_id=attempt.job_id, pk__lt=attempt.pk)
    failed = before.filter(verdict=WebhookAttempt.Verdict.RETRY).aggregate(
        last=Max("id")
    )
    if failed["last"] is None:
        return False
    since = _sent_to(attempt.endpoint_id).filter(pk__gt=failed["last"])
    return since.filter(verdict=WebhookAttempt.Verdict.COMPLETED).exists()


def _progress(
    endpoint: WebhookEndpoint, *, besides: uuid.UUID | None = None
) -> Progress:
    if endpoint.breaker == WebhookEndpoint.Breaker.CLOSED:
        return Progress()
    recovers = endpoint.breaker == WebhookEndpoint.Breaker.RECOVERING
    return Progress(
        used=_sent_to(endpoint.pk).filter(pk__gt=endpoint.window_after).count()
        if recovers
        else 0,
        under_way=WebhookAttempt.objects.filter(
            endpoint=endpoint, slot__isnull=False
        ).count(),
        more=backlog.waits(endpoint.pk, besides=besides),
    )


def _sent_to(endpoint_id: int | None) -> WebhookAttemptQuerySet:
    """The attempts of deliveries: no test events, and what went out once only."""
    sent = WebhookAttempt.objects.filter(endpoint=endpoint_id, job_id__isnull=False)
    return sent.exclude(verdict__in=NOT_SENT)


def _alike(
    rows: Iterable[tuple[str, int | None, uuid.UUID | None]],
    wanted: Callable[[str, int | None], bool],
) -> list[uuid.UUID | None]:
    """The jobs of the rows, newest first, up to one that is not as wanted."""
    alike = itertools.takewhile(lambda row: wanted(row[0], row[1]), rows)
    return [job_id for _, _, job_id in alike]
