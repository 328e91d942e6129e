"""The questions that are asked of this app's tables, as SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import AbstractBaseUser
from django.db import models
from django.db.models import BooleanField, ExpressionWrapper, F, OuterRef, Q, Subquery
from django.db.models.functions import Now

DELIVERY_TYPE = "webhook.deliver"
"""The type of the jobs that deliver webhooks."""

if TYPE_CHECKING:
    from notify.models import (
        Notification,
        WebhookAttempt,
        WebhookDelivery,
        WebhookEndpoint,
    )

IS_READ = ExpressionWrapper(Q(read_at__isnull=False), output_field=BooleanField())
INBOX_ORDER = (IS_READ.asc(), F("created_at").desc(), F("id").desc())
"""Unread first, then the newest; the index ``notifications_inbox`` has the same order."""


class NotificationQuerySet(models.QuerySet["Notification"]):
    """A user's notifications."""

    def of(self, user: AbstractBaseUser) -> NotificationQuerySet:
        """What this user was told."""
        return self.filter(user_id=user.pk)

    def inbox(self) -> NotificationQuerySet:
        """Unread first, then the newest."""
        return self.order_by(*INBOX_ORDER)

    def unread(self) -> NotificationQuerySet:
        return self.filter(read_at__isnull=True)

    def mark_read(self) -> int:
        """Set ``read_at`` where it is not set; return how many were unread."""
        return self.unread().update(read_at=Now())


class WebhookEndpointQuerySet(models.QuerySet["WebhookEndpoint"]):
    """Receivers of webhooks."""

    def for_topic(self, topic: str) -> WebhookEndpointQuerySet:
        """Those that are enabled and have exactly this topic in their list."""
        return self.filter(enabled=True, topics__contains=[topic])

    def with_health(self) -> WebhookEndpointQuerySet:
        """Each with ``delivered_at`` and ``last_verdict``, from its attempts that ended."""
        from notify.models import WebhookAttempt

        ended = WebhookAttempt.objects.filter(
            endpoint=OuterRef("pk"), finished_at__isnull=False
        ).exclude(verdict=WebhookAttempt.Verdict.SKIPPED)
        delivered = ended.filter(verdict=WebhookAttempt.Verdict.COMPLETED)
        return self.annotate(  # type: ignore[no-redef] # declared for readers
            delivered_at=Subquery(delivered.order_by("-id").values("finished_at")[:1]),
            last_verdict=Subquery(ended.order_by("-id").values("verdict")[:1]),
        )


class WebhookAttemptQuerySet(models.QuerySet["WebhookAttempt"]):
    """Attempts at delivering a webhook."""

    def open(self) -> WebhookAttemptQuerySet:
        """Those of which nobody knows how they ended: under way, or cut off by a crash."""
        return self.filter(finished_at__isnull=True)

    def oldest(self, count: int) -> WebhookAttemptQuerySet:
        """The first ``count`` rows, found by the primary key alone."""
        return self.filter(pk__in=self.order_by("pk").values("pk")[:count])


class WebhookDeliveryManager(models.Manager["WebhookDelivery"]):
    """Of all jobs those that deliver webhooks."""

    def get_queryset(self) -> models.QuerySet[WebhookDelivery]:
        return super().get_queryset().filter(type=DELIVERY_TYPE)
