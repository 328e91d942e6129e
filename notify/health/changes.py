"""Writing what was decided about an endpoint, and telling it: once for each change, to every admin, never by webhook."""

from __future__ import annotations

import datetime as dt
import logging
from typing import Any

from django.db.models.functions import Now

from jobs.backoff import lengthened
from notify import audit, links, topics
from notify.dispatch import Event, dispatch
from notify.events import LogEvent
from notify.health import backlog, switching
from notify.health.breaker import Decision, State
from notify.models import WebhookEndpoint
from notify.models.endpoint import REASON_MAX_LENGTH
from notify.recipients import admins
from notify.topics import Topic

FAILS = (State.OPEN, State.PARKED)

log = logging.getLogger(__name__)


def write(endpoint: WebhookEndpoint, decision: Decision, *, now: dt.datetime) -> None:
    """Write it, let out what may go, and tell what has changed, in the open transaction.

    ``endpoint`` is locked, and has the new values afterwards.
    """
    before, after = endpoint.breaker, decision.standing
    _update(endpoint, decision, now=now)
    if decision.windowed:
        backlog.release(endpoint, decision.let_out)
    elif decision.let_out:
        backlog.bring(endpoint, decision.let_out)
    elif after.state == State.CLOSED != before:
        backlog.release_all(endpoint)
        _tell(
            topics.ENDPOINT_RECOVERED,
            endpoint,
            title=f"Webhooks to {endpoint.name} go out again",
            body=f"{endpoint.target} takes them. What has waited is being sent.",
            data={},
        )
        log.info(LogEvent.ENDPOINT_RECOVERED, extra=_facts(endpoint))
    if after.state in FAILS and (
        before == State.CLOSED or State.PARKED == after.state != before
    ):
        _tell_failing(endpoint)
    if decision.disable and switching.disable(
        endpoint, actor=audit.SYSTEM, reason=decision.disable
    ):
        _tell(
            topics.ENDPOINT_DISABLED,
            endpoint,
            title=f"Webhooks to {endpoint.name} are switched off",
            body=f"{endpoint.target}: {decision.disable}. What waits for it is kept, and sent once it is enabled again.",
            data={"reason": decision.disable},
        )
        log.error(
            LogEvent.ENDPOINT_DISABLED,
            extra={**_facts(endpoint), "reason": decision.disable},
        )


def _update(endpoint: WebhookEndpoint, decision: Decision, *, now: dt.datetime) -> None:
    after = decision.standing
    until = after.until
    if until is not None and until != endpoint.breaker_until:
        # What a receiver asks for is never undercut, and endpoints that fell together do not come together.
        until = now + lengthened(until - now)
    values: dict[str, Any] = {
        "breaker": after.state,
        "breaker_reason": after.reason[:REASON_MAX_LENGTH],
        "breaker_since": after.since,
        "breaker_until": until,
        "breaker_tries": after.tries,
        "window": after.window,
    }
    if decision.windowed:
        values["window_after"] = backlog.newest_attempt(endpoint.pk)
    changed = {
        name: value
        for name, value in values.items()
        if getattr(endpoint, name) != value
    }
    if not changed:
        return
    for name, value in changed.items():
        setattr(endpoint, name, value)
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(updated_at=Now(), **changed)


def _tell_failing(endpoint: WebhookEndpoint) -> None:
    if endpoint.breaker == State.PARKED:
        title = f"Webhooks to {endpoint.name} wait: it refuses them all"
        then = "A person has to look. Until then one delivery tries now and then."
    else:
        title = f"Webhooks to {endpoint.name} wait: it fails"
        then = "One delivery at a time tries, and when one arrives the others follow."
    _tell(
        topics.ENDPOINT_FAILING,
        endpoint,
        title=title,
        body=f"{endpoint.target}: {endpoint.breaker_reason}. {then} None is lost, and none uses up an attempt.",
        data={"breaker": endpoint.breaker, "reason": endpoint.breaker_reason},
    )
    log.warning(
        LogEvent.ENDPOINT_FAILING,
        extra={
            **_facts(endpoint),
            "breaker": endpoint.breaker,
            "reason": endpoint.breaker_reason,
        },
    )


def _tell(
    topic: Topic,
    endpoint: WebhookEndpoint,
    *,
    title: str,
    body: str,
    data: dict[str, Any],
) -> None:
    if topic is not topics.ENDPOINT_DISABLED:  # which is audited as it is done
        audit.record(
            audit.SYSTEM,
            topic.name,
            target=f"webhook:{endpoint.name}",
            data={"target": endpoint.target, **data},
        )
    dispatch(
        Event(
            topic=topic.name,
            recipients=admins(),
            title=title,
            body=body,
            data={
                "endpoint_id": endpoint.pk,
                "endpoint": endpoint.name,
                **data,
                "url": links.admin_page(endpoint),
            },
        )
    )


def _facts(endpoint: WebhookEndpoint) -> dict[str, Any]:
    return {"endpoint": endpoint.name, "target": endpoint.target}
