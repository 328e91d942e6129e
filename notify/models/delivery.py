"""Deliveries, as rows of the queue, and the resending of those that died."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now

from jobs.models import Job
from notify.models.audit import ACTOR_MAX_LENGTH
from notify.models.endpoint import REASON_MAX_LENGTH, WebhookEndpoint
from notify.querysets import WebhookDeliveryManager

MOST_PER_MINUTE = 6_000


class WebhookDelivery(Job):
    """A job that delivers a webhook, as the admin shows it; its rows are the queue's."""

    objects: ClassVar[WebhookDeliveryManager] = WebhookDeliveryManager()  # type: ignore[assignment]

    class Meta:
        proxy = True
        verbose_name_plural = "webhook deliveries"
        permissions = [
            ("resend_webhookdelivery", "Can resend deliveries and recover dead ones")
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk}"


class WebhookRecovery(models.Model):
    """The resending of everything that died for one endpoint since a time, at a pace, by jobs."""

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        PAUSED = "paused", "Paused"
        FINISHED = "finished", "Finished"
        CANCELLED = "cancelled", "Cancelled"

    endpoint = models.ForeignKey(
        WebhookEndpoint, on_delete=models.CASCADE, related_name="recoveries"
    )
    since = models.DateTimeField(help_text="what died at this time or later")
    until = models.DateTimeField(
        help_text="when it was asked for: what dies later is not in it"
    )
    state = models.CharField(
        max_length=9, choices=State, default=State.RUNNING, db_default=State.RUNNING
    )
    reason = models.CharField(max_length=REASON_MAX_LENGTH, blank=True, db_default="")
    per_minute = models.IntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(MOST_PER_MINUTE)]
    )
    counted = models.IntegerField(help_text="how many there were when it was asked for")
    resent = models.IntegerField(default=0, db_default=0)
    skipped = models.IntegerField(default=0, db_default=0)
    cursor = models.UUIDField(null=True, blank=True)
    """The job that it has come to; the next is the one after it."""
    job_id = models.UUIDField(null=True, blank=True, editable=False)
    """The job that does its next slice. Any other that finds it has nothing to do."""
    requested_by = models.CharField(max_length=ACTOR_MAX_LENGTH)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "webhook_recoveries"
        verbose_name_plural = "webhook recoveries"
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint"],
                name="webhook_recoveries_one",
                condition=models.Q(state__in=("running", "paused")),
            )
        ]

    def __str__(self) -> str:
        return f"recovery {self.pk} of {self.endpoint}"
