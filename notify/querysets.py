"""The questions that are asked of this app's tables, as SQL."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Self

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models
from django.db.models import (
    BooleanField,
    CharField,
    DurationField,
    ExpressionWrapper,
    F,
    Func,
    IntegerField,
    OuterRef,
    Q,
    Subquery,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Now

from jobs.querysets import JobQuerySet
from notify import patterns

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
        """Those not read yet, found by the index of the inbox: "read_at IS NULL" would look at all that the user has."""
        unread = Func(
            IS_READ, template="%(expressions)s IS FALSE", output_field=BooleanField()
        )
        return self.filter(unread)

    def mark_read(self) -> int:
        """Set ``read_at`` where it is not set; return how many were unread."""
        return self.unread().update(read_at=Now())


class WebhookEndpointQuerySet(models.QuerySet["WebhookEndpoint"]):
    """Receivers of webhooks."""

    def for_topic(self, topic: str) -> WebhookEndpointQuerySet:
        """Those that are enabled and have this topic in their list, or a pattern that stands for it."""
        return self.filter(enabled=True, topics__overlap=patterns.matching(topic))

    def with_health(self) -> WebhookEndpointQuerySet:
        """Each with what its attempts and its deliveries say of it.

        ``delivered_at`` and ``last_verdict`` are of attempts that ended; ``failing_since`` is the first delivery that failed after
        the last success, None where that came last; ``in_flight`` counts requests that are under way, ``waiting`` deliveries that are
        pending, of which ``waiting_since`` is the oldest.
        """
        return self.annotate(  # type: ignore[no-redef] # declared for readers
            delivered_at=Subquery(_delivered().values("finished_at")[:1]),
            last_verdict=Subquery(_ended().order_by("-id").values("verdict")[:1]),
            failing_since=Subquery(_first_failure().values("finished_at")[:1]),
            in_flight=_count(_under_way()),
            waiting=_count(_waiting()),
            waiting_since=Subquery(
                _waiting().order_by("type", "ref_id", "id").values("created_at")[:1]
            ),
        )


def _attempts() -> WebhookAttemptQuerySet:
    from notify.models import WebhookAttempt

    return WebhookAttempt.objects.filter(endpoint=OuterRef("pk"))


def _under_way() -> WebhookAttemptQuerySet:
    """Without those whose worker was killed: their places are free, though nobody has had to take one yet."""
    from notify.health.places import LOST_AFTER

    timeout = Coalesce(
        OuterRef("timeout"),
        Value(settings.NOTIFY_WEBHOOK_TIMEOUT),
        output_field=DurationField(),
    )
    return _attempts().filter(
        slot__isnull=False, started_at__gt=Now() - timeout - LOST_AFTER
    )


def _ended() -> WebhookAttemptQuerySet:
    """The attempts that were sent and have ended."""
    return _attempts().filter(
        finished_at__isnull=False, verdict__in=("completed", "retry", "permanent")
    )


def _delivered() -> WebhookAttemptQuerySet:
    """The last first."""
    done = _attempts().filter(finished_at__isnull=False, verdict="completed")
    return done.order_by("-id")


def _first_failure() -> WebhookAttemptQuerySet:
    """The deliveries that failed after the last success, the first of them first.

    A test event that a person has sent, a probe with a secret that the receiver has not yet, and a check-up, which is to
    be refused, say nothing about these.
    """
    from notify.models import WebhookAttempt

    # Of the endpoint, not of the attempt, for each of which it would be looked up again.
    of_the_same = WebhookAttempt.objects.filter(
        endpoint=OuterRef(OuterRef("pk")), verdict="completed"
    )
    last = Subquery(of_the_same.order_by("-id").values("id")[:1])
    failed = _ended().filter(id__gt=Coalesce(last, Value(0)), job_id__isnull=False)
    return failed.exclude(verdict="completed").order_by("id")


def _waiting() -> models.QuerySet[WebhookDelivery]:
    from notify.models import WebhookDelivery

    return WebhookDelivery.objects.filter(
        ref_id=Cast(OuterRef("pk"), CharField()), status="pending"
    )


def _count(rows: models.QuerySet[Any]) -> Coalesce:
    # No aggregate to Django, which would group by it.
    counted = rows.order_by().annotate(n=Func(F("pk"), function="count"))
    return Coalesce(
        Subquery(counted.values("n"), output_field=IntegerField()), Value(0)
    )


class WebhookAttemptQuerySet(models.QuerySet["WebhookAttempt"]):
    """Attempts at delivering a webhook."""

    def open(self) -> WebhookAttemptQuerySet:
        """Those of which nobody knows how they ended: under way, or cut off by a crash."""
        return self.filter(finished_at__isnull=True)

    def oldest(self, count: int) -> WebhookAttemptQuerySet:
        """The first ``count`` rows, found by the primary key alone."""
        return self.filter(pk__in=self.order_by("pk").values("pk")[:count])


class WebhookDeliveryQuerySet(JobQuerySet):
    """Jobs that deliver webhooks."""

    def of(self, endpoint: WebhookEndpoint) -> Self:
        """What is or was to go to this endpoint."""
        return self.filter(ref_id=str(endpoint.pk))

    def died(self, *, since: dt.datetime, until: dt.datetime) -> Self:
        """What was given up in this time and has not been sent again, in the order of the events."""
        dead = self.filter(
            status="dead", completed_at__gte=since, completed_at__lte=until
        )
        return dead.order_by("pk")


class WebhookDeliveryManager(models.Manager["WebhookDelivery"]):
    """Of all jobs those that deliver webhooks."""

    def get_queryset(self) -> WebhookDeliveryQuerySet:  # type: ignore[override] # of a proxy of their model
        found = WebhookDeliveryQuerySet(self.model, using=self._db)
        return found.filter(type=DELIVERY_TYPE)

    def of(self, endpoint: WebhookEndpoint) -> WebhookDeliveryQuerySet:
        """What is or was to go to this endpoint."""
        return self.get_queryset().of(endpoint)
