"""The tables of what is told to people and receivers. What is done with them lives elsewhere.

Every time is the database's, so that no host's clock decides anything.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F
from django.db.models.functions import Now
from django.utils.http import url_has_allowed_host_and_scheme

from notify import encryption, signing, targets
from notify.exceptions import InvalidUrl
from notify.querysets import (
    INBOX_ORDER,
    NotificationQuerySet,
    WebhookAttemptQuerySet,
    WebhookEndpointQuerySet,
)
from notify.topics import NAME_MAX_LENGTH as TOPIC_MAX_LENGTH

TITLE_MAX_LENGTH = 200
ACTOR_MAX_LENGTH = 200
ACTION_MAX_LENGTH = 100
TARGET_MAX_LENGTH = 300


def validate_url(url: str) -> None:
    """Django's form of :func:`notify.targets.parse`."""
    try:
        targets.parse(url)
    except InvalidUrl as error:
        raise ValidationError(str(error), code="invalid_url") from None


class Notification(models.Model):
    """One thing that one user was told."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="notifications",
        db_index=False,
    )
    topic = models.CharField(max_length=TOPIC_MAX_LENGTH)
    title = models.CharField(max_length=TITLE_MAX_LENGTH)
    body = models.TextField(blank=True, db_default="")
    data = models.JSONField(default=dict, db_default={}, blank=True)
    read_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[NotificationQuerySet] = NotificationQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "notifications"
        indexes = [models.Index(F("user"), *INBOX_ORDER, name="notifications_inbox")]

    def __str__(self) -> str:
        return self.title

    @property
    def link(self) -> str:
        """The page on this site that ``data.url`` names, as a path; empty where it names none.

        Whatever leads elsewhere is not followed.
        """
        url = self.data.get("url") if isinstance(self.data, dict) else None
        if isinstance(url, str) and url.startswith("/"):
            return (
                url if url_has_allowed_host_and_scheme(url, allowed_hosts=None) else ""
            )
        return ""


class WebhookEndpoint(models.Model):
    """A receiver of webhooks: where, of what, and the secret that signs.

    The secret is reachable through :meth:`signing_secret` alone. Neither it nor the URL, which may be a credential
    too, is in ``repr``.
    """

    name = models.CharField(max_length=100, unique=True)
    url = models.CharField(
        "URL", max_length=targets.MAX_LENGTH, validators=[validate_url]
    )
    topics = ArrayField(
        models.CharField(max_length=TOPIC_MAX_LENGTH), default=list, blank=True
    )
    enabled = models.BooleanField(default=True, db_default=True)
    encrypted_secret = models.TextField(editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    delivered_at: dt.datetime | None
    last_verdict: str | None
    """When it last took a delivery, and what its last attempt came to; known after ``with_health()``."""

    objects: ClassVar[WebhookEndpointQuerySet] = WebhookEndpointQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "webhook_endpoints"
        ordering = ["name"]
        permissions = [("test_webhookendpoint", "Can send test events")]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save; the secret goes under the first of the encryption keys."""
        self.url = targets.parse(self.url).url
        self.encrypted_secret = encryption.renew(self.encrypted_secret)
        self.updated_at = Now()
        super().save(*args, **kwargs)
        # Read from the database when it is next asked for.
        del self.updated_at

    @property
    def target(self) -> str:
        """Scheme, host and a short hash of the URL: what may be shown of it."""
        try:
            return targets.parse(self.url).label
        except InvalidUrl:
            return "an invalid URL"

    def set_secret(self, secret: str) -> None:
        """Keep this secret, encrypted. Raises ``InvalidSecret``, and ``EncryptionError`` without a key."""
        self.encrypted_secret = encryption.encrypt(signing.checked_secret(secret))

    def signing_secret(self) -> str:
        """The secret in the clear, to sign with. Raises ``EncryptionError``."""
        return encryption.decrypt(self.encrypted_secret)


class WebhookAttempt(models.Model):
    """One attempt at one delivery, written before the request and closed after it.

    A row without ``finished_at`` is under way, or was cut off: whether the receiver has the event is not known.
    """

    class Verdict(models.TextChoices):
        UNKNOWN = "unknown", "Unknown"
        COMPLETED = "completed", "Delivered"
        RETRY = "retry", "Failed"
        PERMANENT = "permanent", "Refused"
        SKIPPED = "skipped", "Not sent"

    # Plain values and no constraint: the purge of jobs leaves the record of what was sent.
    job_id = models.UUIDField(null=True, blank=True, help_text="empty for a test event")
    endpoint = models.ForeignKey(
        WebhookEndpoint,
        null=True,
        on_delete=models.SET_NULL,
        related_name="attempts",
        db_index=False,
    )
    topic = models.CharField(max_length=TOPIC_MAX_LENGTH)
    number = models.IntegerField()
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True, blank=True)
    status = models.IntegerField("HTTP status", null=True, blank=True)
    verdict = models.CharField(
        max_length=9,
        choices=Verdict,
        default=Verdict.UNKNOWN,
        db_default=Verdict.UNKNOWN,
    )
    cause = models.TextField(blank=True, db_default="")
    duration = models.DurationField(null=True, blank=True)
    peer = models.GenericIPAddressField("peer address", null=True, blank=True)
    excerpt = models.TextField("beginning of the answer", blank=True, db_default="")

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

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.job_id or 'a test event'}"


class AuditEntry(models.Model):
    """Who did what to what: rows are added, never changed."""

    actor = models.CharField(max_length=ACTOR_MAX_LENGTH)
    action = models.CharField(max_length=ACTION_MAX_LENGTH)
    target = models.CharField(max_length=TARGET_MAX_LENGTH)
    data = models.JSONField(default=dict, db_default={}, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "audit_entries"
        verbose_name_plural = "audit entries"
        indexes = [models.Index(fields=["target"], name="audit_entries_target")]

    def __str__(self) -> str:
        return f"{self.actor}: {self.action} {self.target}"
