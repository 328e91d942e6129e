"""Filters of the list of deliveries, which stay quick over a million jobs: each goes by an index or looks at a bounded number of rows."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone

from jobs.filters import StatusFilter
from notify import topics
from notify.models import WebhookDelivery, WebhookEndpoint

LOOKED_AT = 10_000
"""The newest deliveries among which a topic is looked for: no index has it."""

_SKEW = dt.timedelta(hours=1)
_TIMES = {
    "1h": ("the last hour", dt.timedelta(hours=1)),
    "24h": ("the last 24 hours", dt.timedelta(hours=24)),
    "7d": ("the last 7 days", dt.timedelta(days=7)),
}
_FEW = 100

__all__ = ["EndpointFilter", "StatusFilter", "TimeFilter", "TopicFilter"]


class EndpointFilter(admin.SimpleListFilter):
    """By what the queue keeps of it, so that the deliveries of one that was deleted are found as well."""

    title = "endpoint"
    parameter_name = "endpoint"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        named = WebhookEndpoint.objects.values_list("pk", "name")[:_FEW]
        choices = [(str(pk), name) for pk, name in named]
        chosen = self.value()
        if chosen and chosen not in dict(choices):
            choices.append((chosen, f"no. {chosen}"))
        return choices

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[WebhookDelivery]
    ) -> QuerySet[WebhookDelivery]:
        chosen = self.value()
        if not chosen:
            return queryset
        # No text in the database has it, nor may a query.
        return queryset.none() if "\x00" in chosen else queryset.filter(ref_id=chosen)


class TimeFilter(admin.SimpleListFilter):
    """When the event happened. An id begins with that time, which the primary key's index finds."""

    title = "time"
    parameter_name = "since"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [(name, label) for name, (label, _) in _TIMES.items()]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[WebhookDelivery]
    ) -> QuerySet[WebhookDelivery]:
        chosen = self.value()
        if chosen not in _TIMES:
            return queryset
        ago = _TIMES[chosen][1]
        return queryset.filter(
            # Hosts' clocks, so only roughly; the database's decides.
            pk__gte=_first_id(timezone.now() - ago - _SKEW),
            created_at__gte=Now() - ago,
        )


class TopicFilter(admin.SimpleListFilter):
    """Among the newest deliveries that the other filters leave. The last of the filters, therefore."""

    title = f"topic (of the newest {LOOKED_AT:,})"
    parameter_name = "topic"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]
    ) -> list[tuple[str, str]]:
        return [(topic.name, topic.name) for topic in topics.webhook_topics()]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[WebhookDelivery]
    ) -> QuerySet[WebhookDelivery]:
        chosen = self.value()
        if not chosen:
            return queryset
        if "\x00" in chosen:
            return queryset.none()
        newest = queryset.order_by("-pk").values("pk")[:LOOKED_AT]
        return queryset.filter(pk__in=newest, topic=chosen)


def _first_id(time: dt.datetime) -> uuid.UUID:
    """The least UUID version 7 of that time."""
    milliseconds = int(time.timestamp() * 1000)
    return uuid.UUID(int=milliseconds << 80)
