"""Making endpoints: by command, and the first one by ``migrate`` from the environment."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from django.apps import apps as global_apps
from django.apps.registry import Apps
from django.conf import settings
from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, transaction

from notify import audit, encryption, patterns, signing, targets
from notify.events import LogEvent
from notify.exceptions import NotifyError
from notify.models import AuditEntry, WebhookEndpoint
from notify.models.endpoint import IN_FLIGHT_DEFAULT

FIRST_NAME = "default"
"""The name of the endpoint that ``NOTIFY_WEBHOOK_URL`` makes."""

ADDED = "webhook.endpoint_added"
"""The audited action."""

log = logging.getLogger(__name__)


def add(
    name: str,
    url: str,
    *,
    topic_names: Iterable[str],
    secret: str,
    actor: str,
    headers: Mapping[str, str] = MappingProxyType({}),
    timeout: dt.timedelta | None = None,
    max_in_flight: int = IN_FLIGHT_DEFAULT,
    checkup_allowed: bool = False,
) -> WebhookEndpoint:
    """Make an endpoint, audited. ``topic_names`` may be patterns; see :mod:`notify.patterns`.

    Raises ``InvalidUrl``, ``InvalidSecret``, ``InvalidHeader``, ``InvalidTopic``, ``UnknownTopic``, and
    :class:`django.core.exceptions.ValidationError` for any other value that may not be, as a name that is taken.
    """
    endpoint = WebhookEndpoint(
        name=name,
        url=targets.parse(url).url,
        topics=patterns.checked(topic_names),
        timeout=timeout,
        max_in_flight=max_in_flight,
        checkup_allowed=checkup_allowed,
    )
    endpoint.set_secret(secret)
    endpoint.set_headers(headers)
    endpoint.full_clean()
    with transaction.atomic():
        endpoint.save()
        audit.record(
            actor,
            ADDED,
            target=f"webhook:{endpoint.name}",
            data={
                "target": endpoint.target,
                "topics": endpoint.topics,
                "headers": sorted(headers),
            },
        )
    log.info(
        LogEvent.ENDPOINT_CREATED, extra={"endpoint": name, "target": endpoint.target}
    )
    return endpoint


def create_first(
    *, using: str = DEFAULT_DB_ALIAS, apps: Apps = global_apps, **_: Any
) -> None:
    """After ``migrate``: make the endpoint that ``NOTIFY_WEBHOOK_URL`` names, where there is none yet.

    One that exists is never touched. Raises :class:`CommandError`, one line that names the variable.
    """
    if not settings.NOTIFY_WEBHOOK_URL or using != DEFAULT_DB_ALIAS:
        return
    try:
        # The tables as this migrate leaves them, which may be before this app's first migration.
        model = apps.get_model("notify", WebhookEndpoint.__name__)
    except LookupError:
        return
    if model._default_manager.exists():
        return
    values = _first_endpoint()
    _, created = model._default_manager.get_or_create(name=FIRST_NAME, defaults=values)
    if created:
        target = targets.parse(values["url"]).label
        apps.get_model("notify", AuditEntry.__name__)._default_manager.create(
            actor=audit.SYSTEM,
            action=ADDED,
            target=f"webhook:{FIRST_NAME}",
            data={"target": target, "topics": values["topics"]},
        )
        log.info(
            LogEvent.ENDPOINT_CREATED, extra={"endpoint": FIRST_NAME, "target": target}
        )


def _first_endpoint() -> dict[str, Any]:
    variable = "NOTIFY_WEBHOOK_URL"
    try:
        url = targets.parse(settings.NOTIFY_WEBHOOK_URL).url
        variable = "NOTIFY_WEBHOOK_SECRET"
        secret = signing.checked_secret(settings.NOTIFY_WEBHOOK_SECRET or "")
        variable = "NOTIFY_WEBHOOK_TOPICS"
        wanted = patterns.checked(settings.NOTIFY_WEBHOOK_TOPICS)
        variable = "ACW_ENCRYPTION_KEYS"
        return {
            "url": url,
            "topics": wanted,
            "encrypted_secret": encryption.encrypt(secret),
        }
    except NotifyError as error:
        raise CommandError(f"{variable}: {error}") from None
