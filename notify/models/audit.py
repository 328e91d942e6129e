"""The record of who did what."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

ACTOR_MAX_LENGTH = 200
ACTION_MAX_LENGTH = 100
TARGET_MAX_LENGTH = 300


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
