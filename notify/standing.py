"""How an endpoint fares, in words, for lists and pages."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.utils import timezone

from jobs.display import duration
from notify.health import gate
from notify.models import WebhookEndpoint


def word(endpoint: WebhookEndpoint) -> str:
    """``disabled``, or the breaker's state; where deliveries go out ``well``, or ``failing`` where the last have failed.

    Of the last ``with_health()`` has to tell.
    """
    if not endpoint.enabled:
        return "disabled"
    if endpoint.breaker == WebhookEndpoint.Breaker.CLOSED:
        return "failing" if getattr(endpoint, "failing_since", None) else "well"
    return endpoint.breaker


def reason(endpoint: WebhookEndpoint) -> str:
    """Why it is disabled or held back, and when it is tried next; empty where it is well."""
    if not endpoint.enabled:
        return endpoint.disabled_reason or "by a person"
    if endpoint.breaker == WebhookEndpoint.Breaker.CLOSED:
        return ""
    parts = [endpoint.breaker_reason, _next_try(endpoint)]
    return "; ".join(part for part in parts if part)


def why_it_waits(endpoint: WebhookEndpoint) -> str:
    """Why nothing is sent to it now, with what its breaker has found; empty where it is well."""
    reason = gate.reason_to_wait(endpoint)
    if not reason or not endpoint.enabled:
        return reason
    found = endpoint.breaker_reason if settings.NOTIFY_WEBHOOK_ENABLED else ""
    return f"{reason}: {found}" if found else reason


def _next_try(endpoint: WebhookEndpoint) -> str:
    until = endpoint.breaker_until
    if until is None or endpoint.breaker == WebhookEndpoint.Breaker.RECOVERING:
        return ""
    left = until - timezone.now()
    if left <= dt.timedelta(0):
        return "the next delivery tries it"
    return f"tried again in {duration(left)}"
