"""System checks of what the settings say about webhooks: static facts, no query.

What the database says (an endpoint for every topic, deliveries that arrive) is for ``doctor``.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register  # noqa: A004 (Django's names)

from jobs.checks import WORKER
from notify import patterns, signing, targets, topics, trust
from notify.exceptions import (
    InvalidSecret,
    InvalidTopic,
    InvalidUrl,
    UnknownTopic,
    UnreadableBundle,
)


@register(WORKER)
def check_webhook_settings(**_: Any) -> list[CheckMessage]:
    """Everything about ``NOTIFY_WEBHOOK_*`` that can be wrong without a look into the database."""
    return [
        *_check_url(),
        *_check_secret(),
        *_check_topics(),
        *_check_timeout(),
        *_check_bundle(),
    ]


def _check_url() -> list[CheckMessage]:
    if not settings.NOTIFY_WEBHOOK_URL:
        return []
    try:
        targets.parse(settings.NOTIFY_WEBHOOK_URL)
    except InvalidUrl as error:
        return [
            Error(
                f"NOTIFY_WEBHOOK_URL: {error}.",
                hint="Set it to the receiver's address, or leave it out and add endpoints in the admin.",
                id="notify.E001",
            )
        ]
    return []


def _check_secret() -> list[CheckMessage]:
    if not settings.NOTIFY_WEBHOOK_URL and not settings.NOTIFY_WEBHOOK_SECRET:
        return []
    try:
        signing.checked_secret(settings.NOTIFY_WEBHOOK_SECRET or "")
    except InvalidSecret as error:
        return [
            Error(
                f"NOTIFY_WEBHOOK_SECRET: {error}.",
                hint="Make one with: openssl rand -hex 32",
                id="notify.E002",
            )
        ]
    return []


def _check_topics() -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    for name in settings.NOTIFY_WEBHOOK_TOPICS:
        try:
            patterns.checked([name])
        except UnknownTopic as error:
            known = [*map(str, topics.webhook_topics()), *patterns.known()]
            messages.append(
                Error(
                    f"NOTIFY_WEBHOOK_TOPICS: {error}",
                    hint=f"Known topics: {', '.join(known)}",
                    id="notify.E003",
                )
            )
        except InvalidTopic as error:
            messages.append(
                Error(
                    f"NOTIFY_WEBHOOK_TOPICS: {error}.",
                    hint="Remove it; admins find these in their inbox.",
                    id="notify.E004",
                )
            )
    if settings.NOTIFY_WEBHOOK_URL and not settings.NOTIFY_WEBHOOK_TOPICS:
        messages.append(
            Warning(
                "NOTIFY_WEBHOOK_URL is set and NOTIFY_WEBHOOK_TOPICS is empty: the first endpoint gets no event.",
                hint="List topics in it, or give the endpoint its topics in the admin.",
                id="notify.W001",
            )
        )
    return messages


def _check_timeout() -> list[CheckMessage]:
    lease = settings.JOBS_JOB_REAPER_LEASE_TIMEOUT
    if lease / 2 >= settings.NOTIFY_WEBHOOK_TIMEOUT:
        return []
    return [
        Warning(
            "NOTIFY_WEBHOOK_TIMEOUT is longer than half of JOBS_JOB_REAPER_LEASE_TIMEOUT: a delivery whose worker "
            "falls silent may be taken over, and sent again, while the first is under way.",
            hint=f"Keep it at or below {lease.total_seconds() / 2:g}s.",
            id="notify.W002",
        )
    ]


def _check_bundle() -> list[CheckMessage]:
    try:
        trust.check(settings.NOTIFY_WEBHOOK_CA_BUNDLE)
    except UnreadableBundle as error:
        return [
            Error(
                f"{error}.",
                hint="Name a file of certificates in PEM form that the worker may read, or leave it out for certifi's.",
                id="notify.E005",
            )
        ]
    return []
