"""What one person was told."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F
from django.db.models.functions import Now
from django.utils.http import url_has_allowed_host_and_scheme

from notify.querysets import INBOX_ORDER, NotificationQuerySet
from notify.topics import NAME_MAX_LENGTH as TOPIC_MAX_LENGTH

TITLE_MAX_LENGTH = 200
GROUP_KEY_MAX_LENGTH = 200


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
    # What happens again and again is told once, and counted.
    group_key = models.CharField(
        max_length=GROUP_KEY_MAX_LENGTH, blank=True, db_default=""
    )
    count = models.IntegerField(default=1, db_default=1)

    objects: ClassVar[NotificationQuerySet] = NotificationQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "notifications"
        indexes = [
            models.Index(F("user"), *INBOX_ORDER, name="notifications_inbox"),
            models.Index(
                fields=["group_key", "created_at"],
                name="notifications_group",
                condition=~models.Q(group_key=""),
            ),
        ]

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
