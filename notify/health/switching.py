"""What a person does to an endpoint: enable, disable, resume. Each is audited, in the transaction that changes it."""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from notify import audit
from notify.events import LogEvent
from notify.health import backlog
from notify.models import WebhookEndpoint
from notify.models.endpoint import REASON_MAX_LENGTH

ENABLED = "webhook.endpoint_enabled"
DISABLED = "webhook.endpoint_disabled"
RESUMED = "webhook.endpoint_resumed"
"""The audited actions."""

log = logging.getLogger(__name__)


def enable(endpoint: WebhookEndpoint, *, actor: str) -> bool:
    """Have deliveries sent to it again; return whether that changed anything.

    What waits goes out in windows of 1, 2, 4 …, whatever its breaker was. Raises ``WebhookEndpoint.DoesNotExist``
    where it was deleted meanwhile, as all of these do.
    """
    with transaction.atomic():
        locked = _locked(endpoint)
        if locked.enabled:
            return False
        _change(locked, enabled=True, disabled_reason="", **_let_out(locked))
        _record(
            locked, ENABLED, actor=actor, data={"was_disabled": locked.disabled_reason}
        )
    endpoint.refresh_from_db()
    return True


def disable(endpoint: WebhookEndpoint, *, actor: str, reason: str = "") -> bool:
    """Have nothing sent to it any more; return whether that changed anything.

    No event becomes a delivery for it, and those there are wait. ``reason`` is for what ACW does by itself; empty
    where a person does it.
    """
    with transaction.atomic():
        locked = _locked(endpoint)
        if not locked.enabled:
            return False
        _change(locked, enabled=False, disabled_reason=reason[:REASON_MAX_LENGTH])
        _record(locked, DISABLED, actor=actor, data={"reason": reason})
    endpoint.refresh_from_db()
    return True


def resume(endpoint: WebhookEndpoint, *, actor: str) -> bool:
    """Try it again now, without waiting for its breaker; return whether that changed anything.

    What waits goes out in windows of 1, 2, 4 …; a failure opens the breaker again. To one that is disabled nothing is
    sent: that is enabled, which resumes it too.
    """
    with transaction.atomic():
        locked = _locked(endpoint)
        if not locked.enabled or locked.breaker == WebhookEndpoint.Breaker.CLOSED:
            return False
        _change(locked, **_let_out(locked))
        _record(
            locked,
            RESUMED,
            actor=actor,
            data={"breaker": locked.breaker, "reason": locked.breaker_reason},
        )
    endpoint.refresh_from_db()
    return True


def _locked(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    return WebhookEndpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)


def _let_out(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """The breaker's fields with which what waits goes out in windows; closed where nothing waits."""
    states = WebhookEndpoint.Breaker
    waits = backlog.waits(endpoint.pk)
    if waits:
        backlog.release(endpoint, 1)
    return {
        "breaker": states.RECOVERING if waits else states.CLOSED,
        "breaker_reason": "",
        "breaker_since": Now() if waits else None,
        "breaker_until": Now() if waits else None,
        "breaker_tries": 0,
        "window": 1 if waits else 0,
        "window_after": backlog.newest_attempt(endpoint.pk),
    }


def _change(endpoint: WebhookEndpoint, **values: Any) -> None:
    # Not save(), which would write the secrets anew.
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(updated_at=Now(), **values)


def _record(
    endpoint: WebhookEndpoint, action: str, *, actor: str, data: dict[str, Any]
) -> None:
    audit.record(
        actor,
        action,
        target=f"webhook:{endpoint.name}",
        data={"target": endpoint.target, **data},
    )
    log.info(
        LogEvent.ENDPOINT_SWITCHED,
        extra={"endpoint": endpoint.name, "action": action, "actor": actor},
    )
