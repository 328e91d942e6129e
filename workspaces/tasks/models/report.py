"""What has been reported: each event of the history in one report, and in no other."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now


class TaskReport(models.Model):
    """A report of the events whose ids are above ``after_event``, up to and including ``upto_event``.

    The reports join without a gap: each begins where the one before it ends, and no two begin at the same.
    """

    after_event = models.BigIntegerField(unique=True)
    upto_event = models.BigIntegerField()
    happened = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[models.Manager[TaskReport]] = models.Manager()

    class Meta:
        db_table = "task_reports"
        ordering = ["id"]

    def __str__(self) -> str:
        return f"report {self.pk}"
