"""A receiver of webhooks."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now

from notify import encryption, extra_headers, signing, targets
from notify.exceptions import InvalidUrl
from notify.querysets import WebhookEndpointQuerySet
from notify.topics import NAME_MAX_LENGTH as TOPIC_MAX_LENGTH

REASON_MAX_LENGTH = 300
IN_FLIGHT_DEFAULT, IN_FLIGHT_MOST = 4, 100
ENCRYPTED = (
    "encrypted_headers",
    "encrypted_secret",
    "staged_secret",
    "retiring_secret",
)
"""The fields that are under one of ``ACW_ENCRYPTION_KEYS``, or empty."""

TIMEOUT_SHORTEST, TIMEOUT_LONGEST = dt.timedelta(seconds=1), dt.timedelta(minutes=1)


def validate_name(name: str) -> None:
    """Refuse what cannot be typed, or would spoil a list or a log."""
    if not name.isprintable():
        raise ValidationError(
            "it must be one line of printable characters", code="invalid_name"
        )


def validate_url(url: str) -> None:
    """Django's form of :func:`notify.targets.parse`."""
    try:
        targets.parse(url)
    except InvalidUrl as error:
        raise ValidationError(str(error), code="invalid_url") from None


def longest_timeout() -> dt.timedelta:
    """The most that an endpoint may be given: a minute, but half of the lease of the job that waits for it."""
    lease: dt.timedelta = settings.JOBS_JOB_REAPER_LEASE_TIMEOUT
    return min(TIMEOUT_LONGEST, lease / 2)


def validate_timeout(timeout: dt.timedelta) -> None:
    """Refuse one that is too short to answer in, or too long for the lease."""
    longest = longest_timeout()
    if not TIMEOUT_SHORTEST <= timeout <= longest:
        raise ValidationError(
            f"it must be from {TIMEOUT_SHORTEST.total_seconds():g}s to {longest.total_seconds():g}s "
            "(at most half of JOBS_JOB_REAPER_LEASE_TIMEOUT), or empty",
            code="invalid_timeout",
        )


class WebhookEndpoint(models.Model):
    """A receiver of webhooks: where, of what, the secret that signs, and how it fares.

    Neither a secret nor the URL or a header, which may be credentials too, is in ``repr``.
    """

    class Breaker(models.TextChoices):
        CLOSED = "closed", "Closed"
        """All is well: deliveries go out."""
        OPEN = "open", "Open"
        """It fails: deliveries wait, and one at a time tries."""
        PARKED = "parked", "Parked"
        """It refuses everybody, for a reason that a person has to look at; one delivery tries now and then."""
        RECOVERING = "recovering", "Recovering"
        """It answers again: deliveries go out 1, 2, 4 … at a time."""

    name = models.CharField(max_length=100, unique=True, validators=[validate_name])
    url = models.CharField(
        "URL", max_length=targets.MAX_LENGTH, validators=[validate_url]
    )
    topics = ArrayField(
        models.CharField(max_length=TOPIC_MAX_LENGTH), default=list, blank=True
    )
    enabled = models.BooleanField(default=True, db_default=True)
    disabled_reason = models.CharField(
        max_length=REASON_MAX_LENGTH,
        blank=True,
        db_default="",
        editable=False,
        help_text="why ACW has disabled it; empty where a person did",
    )
    timeout = models.DurationField(
        null=True,
        blank=True,
        validators=[validate_timeout],
        help_text="over the whole exchange; empty: NOTIFY_WEBHOOK_TIMEOUT",
    )
    max_in_flight = models.SmallIntegerField(
        "in flight at most",
        default=IN_FLIGHT_DEFAULT,
        db_default=IN_FLIGHT_DEFAULT,
        validators=[MinValueValidator(1), MaxValueValidator(IN_FLIGHT_MOST)],
        help_text="requests at one time, over all workers",
    )
    checkup_allowed = models.BooleanField(
        "may be checked up",
        default=False,
        db_default=False,
        help_text="its owner agrees to requests that it has to refuse: forged, altered, old",
    )

    encrypted_headers = models.TextField(
        editable=False, blank=True, default="", db_default=""
    )
    """Encrypted: what :meth:`own_headers` gives, as JSON."""
    encrypted_secret = models.TextField(editable=False)
    staged_secret = models.TextField(
        editable=False, blank=True, default="", db_default=""
    )
    """Encrypted: the next one, that signs too until it is promoted."""
    staged_at = models.DateTimeField(null=True, blank=True, editable=False)
    retiring_secret = models.TextField(
        editable=False, blank=True, default="", db_default=""
    )
    """Encrypted: the one before, that signs too until it is retired."""
    promoted_at = models.DateTimeField(null=True, blank=True, editable=False)
    """Since when the current secret signs first; None where it has done so from the beginning."""

    breaker = models.CharField(
        max_length=10,
        choices=Breaker,
        default=Breaker.CLOSED,
        db_default=Breaker.CLOSED,
        editable=False,
    )
    breaker_reason = models.CharField(
        max_length=REASON_MAX_LENGTH, blank=True, db_default="", editable=False
    )
    breaker_since = models.DateTimeField(null=True, blank=True, editable=False)
    breaker_until = models.DateTimeField(null=True, blank=True, editable=False)
    """Before then not even one delivery tries."""
    breaker_tries = models.IntegerField(default=0, db_default=0, editable=False)
    """Tries in a row that have failed since it opened."""
    window = models.IntegerField(default=0, db_default=0, editable=False)
    """While it recovers: how many deliveries may go out before the next look, those after the attempt ``window_after``."""
    window_after = models.BigIntegerField(default=0, db_default=0, editable=False)

    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    delivered_at: dt.datetime | None
    last_verdict: str | None
    failing_since: dt.datetime | None
    in_flight: int
    waiting: int
    waiting_since: dt.datetime | None
    """How it fares; known after ``with_health()``, which says what each is."""

    _replaced_secret = False
    """Whether saving gives it another secret than it had."""

    objects: ClassVar[WebhookEndpointQuerySet] = WebhookEndpointQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "webhook_endpoints"
        ordering = ["name"]
        permissions = [
            ("test_webhookendpoint", "Can send test events and check receivers up")
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save; all that is encrypted goes under the first of the encryption keys."""
        self.url = targets.parse(self.url).url
        for name in ENCRYPTED:
            if token := getattr(self, name):
                setattr(self, name, encryption.renew(token))
        self.updated_at = Now()
        changed = self._replaced_secret
        if changed:
            self.promoted_at = Now()
        super().save(*args, **kwargs)
        # Read from the database when they are next asked for.
        del self.updated_at
        if changed:
            del self.promoted_at
            self._replaced_secret = False

    @property
    def target(self) -> str:
        """Scheme, host and a short hash of the URL: what may be shown of it."""
        try:
            return targets.parse(self.url).label
        except InvalidUrl:
            return "an invalid URL"

    def set_secret(self, secret: str) -> None:
        """Keep this secret, encrypted, and no other: a rotation that is under way ends.

        Raises ``InvalidSecret``, and ``EncryptionError`` without a key.
        """
        self._replaced_secret = bool(self.encrypted_secret)
        self.encrypted_secret = encryption.encrypt(signing.checked_secret(secret))
        self.staged_secret = self.retiring_secret = ""
        self.staged_at = None

    def signing_secret(self) -> str:
        """The secret in the clear, to sign with. Raises ``EncryptionError``."""
        return encryption.decrypt(self.encrypted_secret)

    def set_headers(self, headers: Mapping[str, str]) -> None:
        """Keep these headers of its own, encrypted; none where there are none.

        Raises ``InvalidHeader``, and ``EncryptionError`` without a key.
        """
        checked = extra_headers.checked(headers)
        self.encrypted_headers = (
            encryption.encrypt(json.dumps(checked)) if checked else ""
        )

    def own_headers(self) -> dict[str, str]:
        """Its own headers in the clear. Raises ``EncryptionError``."""
        if not self.encrypted_headers:
            return {}
        headers: dict[str, str] = json.loads(encryption.decrypt(self.encrypted_headers))
        return headers

    @property
    def effective_timeout(self) -> dt.timedelta:
        """What bounds one exchange: its own timeout, cut to what the lease allows now, or ``NOTIFY_WEBHOOK_TIMEOUT``."""
        if self.timeout is not None:
            return min(self.timeout, longest_timeout())
        timeout: dt.timedelta = settings.NOTIFY_WEBHOOK_TIMEOUT
        return timeout
