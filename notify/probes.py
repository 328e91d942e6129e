"""What ``doctor`` asks of this app: whether the endpoints' secrets can be read, and whether one is being changed for long."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from django.db.models import Q
from django.db.models.functions import Now

from jobs.doctor import Finding, error, ok, probe, warning
from jobs.probes import backlog
from notify import rotation
from notify.exceptions import EncryptionError
from notify.models import WebhookEndpoint
from notify.querysets import DELIVERY_TYPE

LONG = dt.timedelta(days=7)
"""A rotation that has not come to its next step by then has been forgotten, or does not come to it."""


backlog.mended_by(
    DELIVERY_TYPE,
    "manage.py webhook recover NAME --since 24h, for each endpoint that `webhook list` shows failing",
)


@probe("secrets")
def secrets() -> Iterator[Finding]:
    """Each can be decrypted, and no rotation has stopped half-way."""
    endpoints = list(WebhookEndpoint.objects.all())
    unreadable = [endpoint.name for endpoint in endpoints if not _is_readable(endpoint)]
    if unreadable:
        yield error(
            f"cannot be read for: {', '.join(unreadable)}",
            advice="Their deliveries fail. Add the key that they were encrypted with to ACW_ENCRYPTION_KEYS, or set the "
            "secrets and headers anew.",
        )
    long_ago = Now() - LONG
    slow = WebhookEndpoint.objects.filter(
        Q(staged_at__lt=long_ago) & ~Q(staged_secret="")
        | Q(promoted_at__lt=long_ago) & ~Q(retiring_secret="")
    )
    for endpoint in slow:
        yield warning(
            f"{endpoint.name}: {rotation.describe(endpoint)}",
            advice=f"Both sign meanwhile. Go on with it: webhook promote {endpoint.name}, or abandon it; a promoted one "
            f"needs deliveries, or: webhook retire {endpoint.name}",
        )
    if not unreadable and not slow:
        yield ok(f"those of {len(endpoints):,} webhook endpoints can be read")


def _is_readable(endpoint: WebhookEndpoint) -> bool:
    try:
        rotation.signing_secrets(endpoint)
        endpoint.own_headers()
    except EncryptionError:
        return False
    return True
