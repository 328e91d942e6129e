"""One attempt at one delivery."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from notify.models.endpoint import WebhookEndpoint
from notify.querysets import WebhookAttemptQuerySet
from notify.topics import NAME_MAX_LENGTH as TOPIC_MAX_LENGTH


class WebhookAttempt(models.Model):
    """One attempt at one delivery, written before the request and closed after it.

    A row without ``finished_at`` is under way, or was cut off: whether the receiver has the event is not known.
    """

    class Verdict(models.TextChoices):
        UNKNOWN = "unknown", "Unknown"
        COMPLETED = "completed", "Delivered"
        RETRY = "retry", "Failed"
        PERMANENT = "permanent", "Refused"
        REPEATED = "repeated", "Refused, sent again"
        """While a secret is being changed: sent again at once, signed with the other one."""
        SKIPPED = "skipped", "Not sent"
        SUPERSEDED = "superseded", "Superseded"

    # Plain values and no constraint: the purge of jobs leaves the record of what was sent.
    job_id = models.UUIDField(null=True, blank=True, help_text="empty for a test event")
    endpoint = models.ForeignKey(
        WebhookEndpoint,
        null=True,
        on_delete=models.SET_NULL,
        related_name="attempts",
        db_index=False,
        # A request that is under way must not keep its endpoint from being deleted; a check for each row would also
        # have all deliveries of an endpoint write to its row.
        db_constraint=False,
    )
    topic = models.CharField(max_length=TOPIC_MAX_LENGTH)
    number = models.IntegerField()
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)
    status = models.IntegerField("HTTP status", null=True, blank=True)
    verdict = models.CharField(
        max_length=10,
        choices=Verdict,
        default=Verdict.UNKNOWN,
        db_default=Verdict.UNKNOWN,
    )
    cause = models.TextField(blank=True, db_default="")
    failure = models.CharField(max_length=20, blank=True, db_default="")
    duration = models.DurationField(null=True, blank=True)
    dns_ms = models.FloatField("looking up", null=True, blank=True)
    connect_ms = models.FloatField("connecting", null=True, blank=True)
    tls_ms = models.FloatField("TLS", null=True, blank=True)
    answer_ms = models.FloatField("waiting for the answer", null=True, blank=True)
    peer = models.GenericIPAddressField("peer address", null=True, blank=True)
    excerpt = models.TextField("beginning of the answer", blank=True, db_default="")
    slot = models.SmallIntegerField(null=True, blank=True, editable=False)
    """Which of its endpoint's places in flight it holds; None when it has ended, or is given up for lost."""
    trial = models.BooleanField(default=False, db_default=False)
    """Whether it was sent to see if the receiver is well again."""
    superseded_by = models.UUIDField(null=True, blank=True)
    """The job of the later event that has made this one old news."""

    objects: ClassVar[WebhookAttemptQuerySet] = WebhookAttemptQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "webhook_attempts"
        indexes = [
            models.Index(fields=["endpoint", "-id"], name="webhook_attempts_endpoint"),
            models.Index(fields=["job_id"], name="webhook_attempts_job"),
            # Finds the last success of an endpoint that has failed ever since.
            models.Index(
                fields=["endpoint", "-id"],
                name="webhook_attempts_delivered",
                condition=models.Q(verdict="completed"),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "slot"],
                name="webhook_attempts_slot",
                condition=models.Q(slot__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.job_id or 'a test event'}"


NOT_SENT = (
    WebhookAttempt.Verdict.SKIPPED,
    WebhookAttempt.Verdict.SUPERSEDED,
    WebhookAttempt.Verdict.REPEATED,
)
"""Verdicts of rows that are no delivery's request, or not the one that counts: they say nothing of how the endpoint fares."""
