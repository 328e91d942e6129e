"""Before a delivery: whether it may go out now, and until when it waits where it may not."""

from __future__ import annotations

import datetime as dt
import threading
import time

from django.conf import settings
from django.db import connection

from jobs import concurrency
from jobs.postponing import postpone
from notify.health import backlog, settling
from notify.health.breaker import State
from notify.health.lanes import Lane
from notify.models import WebhookAttempt, WebhookEndpoint
from notify.querysets import DELIVERY_TYPE

LOOK_AGAIN = dt.timedelta(minutes=1)
"""How long a delivery waits before it looks whether webhooks as a whole are on again."""

SOONEST = dt.timedelta(seconds=1)
"""How long one waits, at least, while the endpoint's breaker keeps it back."""

_NOT_AT_ALL = dt.timedelta(0)
_SHORT, _LONG = dt.timedelta(milliseconds=50), dt.timedelta(seconds=2)

_ROUNDS = 2
"""Deliveries for each thread that come forward at once."""

_PAUSE = 0.1
"""Seconds from one moving of an endpoint's backlog to the next, by one process, at least."""

_PAUSE_SHARE = 5
"""And so many times what the last one took: a long backlog is moved less often."""

_moving = threading.Lock()
_next_move: dict[int, float] = {}


def reason_to_wait(endpoint: WebhookEndpoint | None) -> str:
    """Why nothing is sent to it now; empty where it is well, and only has no place free."""
    if endpoint is None:
        return "the endpoint was deleted"
    if not endpoint.enabled:
        reason = endpoint.disabled_reason
        return f"the endpoint is disabled{reason and ': '}{reason}"
    if not settings.NOTIFY_WEBHOOK_ENABLED:
        return "NOTIFY_WEBHOOK_ENABLED is false"
    if endpoint.breaker != State.CLOSED:
        return f"the endpoint's breaker is {endpoint.breaker}"
    return ""


def is_kept_back(endpoint: WebhookEndpoint) -> bool:
    """Whether ACW itself keeps deliveries back, so that what grows too old is a loss to be told of."""
    if not endpoint.enabled:
        return bool(endpoint.disabled_reason)
    if not settings.NOTIFY_WEBHOOK_ENABLED:
        return False
    return endpoint.breaker in (State.OPEN, State.PARKED)


def turn_away(endpoint: WebhookEndpoint) -> dt.timedelta:
    """How long to wait, for a delivery that may not go out now; what else is due for the endpoint waits as long, or longer.

    Whatever the reason is, no attempt is used up.
    """
    delay, spacing = _wait(endpoint)
    moved = _move(endpoint, delay=delay, spacing=spacing)
    if moved and endpoint.breaker == State.RECOVERING:
        # One looks again soon: what a window lets out while it is turned away here does not reach it.
        return min(delay, SOONEST)
    if not endpoint.enabled and _is_enabled(endpoint):
        # Since it was read: what that let out may just have been moved away with the rest.
        return min(delay, SOONEST)
    return delay


def turn_away_at_lane(lane: Lane) -> dt.timedelta:
    """The same, for one that finds no thread free for it in this process."""
    if not lane.slow and time.monotonic() < _next_move.get(lane.endpoint_id, 0.0):
        return _SHORT  # without a look at the database: those that are quick bring others forward as they end
    endpoint = WebhookEndpoint.objects.filter(pk=lane.endpoint_id).first()
    if endpoint is None:
        return _LONG
    apart = backlog.spacing(endpoint)
    if not lane.slow:
        _move(endpoint, delay=apart, spacing=apart)
        return apart
    # The longer it has been under way, the longer it will be, as far as anybody knows.
    known = max(
        apart * endpoint.max_in_flight / 2, min(dt.timedelta(seconds=lane.age), _LONG)
    )
    delay = min(max(known, _SHORT), LOOK_AGAIN)
    _move(endpoint, delay=delay, spacing=_NOT_AT_ALL)
    return delay


def let_in(endpoint: WebhookEndpoint) -> None:
    """Have the oldest come of what was turned away from a quick endpoint: enough to keep this process's threads at work."""
    if endpoint.breaker == State.CLOSED:
        most = min(endpoint.max_in_flight, concurrency.threads() or 1)
        backlog.bring(endpoint, most * _ROUNDS)


def _wait(endpoint: WebhookEndpoint) -> tuple[dt.timedelta, dt.timedelta]:
    """How long, and how far apart."""
    if not settings.NOTIFY_WEBHOOK_ENABLED:
        return LOOK_AGAIN, _NOT_AT_ALL
    if not endpoint.enabled:
        # Whoever enables it has them come. Each look writes every row of the backlog anew.
        return max(LOOK_AGAIN, settings.NOTIFY_WEBHOOK_BREAKER_MAX_WAIT), _NOT_AT_ALL
    apart = backlog.spacing(endpoint)
    recovers = endpoint.breaker == State.RECOVERING
    if endpoint.breaker == State.CLOSED or (recovers and settling.look(endpoint)):
        return apart, apart
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT breaker_until - statement_timestamp() FROM webhook_endpoints WHERE id = %s",
            [endpoint.pk],
        )
        row = cursor.fetchone()
    left: dt.timedelta | None = row[0] if row else None
    if left is not None and left > _NOT_AT_ALL:
        return left, apart
    # One tries at this moment. When it succeeds, others are brought forward.
    trying = WebhookAttempt.objects.filter(endpoint=endpoint, slot=0).exists()
    return (max(endpoint.effective_timeout, SOONEST) if trying else SOONEST), apart


def _is_enabled(endpoint: WebhookEndpoint) -> bool:
    return WebhookEndpoint.objects.filter(pk=endpoint.pk, enabled=True).exists()


def _move(
    endpoint: WebhookEndpoint, *, delay: dt.timedelta, spacing: dt.timedelta
) -> bool:
    """Have what else is due wait too, so that not each of thousands comes to be turned away at the same moment.

    Returns False where that was done a moment ago.
    """
    began = time.monotonic()
    with _moving:
        if began < _next_move.get(endpoint.pk, 0.0):
            return False
        _next_move[endpoint.pk] = began + LOOK_AGAIN.total_seconds()
    try:
        postpone(
            DELIVERY_TYPE, str(endpoint.pk), delay=delay + spacing, spacing=spacing
        )
    finally:
        took = time.monotonic() - began
        _next_move[endpoint.pk] = began + took + max(_PAUSE, _PAUSE_SHARE * took)
    return True
