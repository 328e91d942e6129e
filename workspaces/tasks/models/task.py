"""Tasks: fields, constraints, indexes. What is done with them lives elsewhere.

Every time is the database's. The deadlines of a status are watched by a job each, see :mod:`workspaces.tasks.deadlines`.
"""

from __future__ import annotations

import datetime as dt
from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from jobs.redaction import redact
from workspaces.models import Workspace, Worktree
from workspaces.tasks.models.agent import Agent
from workspaces.tasks.querysets import TaskQuerySet
from workspaces.tasks.states import ENDED, LIVE, Status, Template

TITLE_MAX_LENGTH = 200

_HAS_HOLDER = Q(status=Status.HELD) | Q(
    status=Status.REVIEWING, template=Template.DIRECT
)


class Task(models.Model):
    """One task. The durations were fixed when it was published; the deadlines follow from them.

    ``misses`` counts the checkpoints that the holder has missed in a row, of which number ``final_miss`` costs the task;
    ``returns`` counts how often it was given back since it was last published. ``worktree_held_since`` tells the holder's hold of the worktree from a later one.
    """

    title = models.CharField(max_length=TITLE_MAX_LENGTH)
    description = models.TextField(blank=True, db_default="")
    template = models.CharField(max_length=7, choices=Template)
    status = models.CharField(max_length=9, choices=Status)
    publisher = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="published"
    )
    holder = models.ForeignKey(
        Agent, null=True, blank=True, on_delete=models.PROTECT, related_name="held"
    )
    workspace = models.ForeignKey(
        Workspace,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="tasks",
    )
    worktree = models.ForeignKey(
        Worktree, null=True, blank=True, on_delete=models.SET_NULL, related_name="tasks"
    )
    worktree_held_since = models.DateTimeField(null=True, blank=True)
    checklist = models.JSONField(default=list, blank=True)

    open_for = models.DurationField()
    hold_for = models.DurationField(null=True, blank=True)
    checkpoint_every = models.DurationField(null=True, blank=True)
    review_for = models.DurationField()
    final_miss = models.PositiveSmallIntegerField(default=1)
    returns_allowed = models.PositiveSmallIntegerField(default=0)

    misses = models.PositiveSmallIntegerField(db_default=0, default=0)
    returns = models.PositiveSmallIntegerField(db_default=0, default=0)
    open_until = models.DateTimeField(null=True, blank=True)
    hold_until = models.DateTimeField(null=True, blank=True)
    checkpoint_warn_at = models.DateTimeField(null=True, blank=True)
    checkpoint_due_at = models.DateTimeField(null=True, blank=True)
    review_warn_at = models.DateTimeField(null=True, blank=True)
    review_until = models.DateTimeField(null=True, blank=True)

    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[TaskQuerySet] = TaskQuerySet.as_manager()  # type: ignore[assignment]

    transfer_until: dt.datetime | None
    """When its pending transfer expires; only of tasks that were read by ``with_transfers``."""

    class Meta:
        db_table = "tasks"
        ordering = ["-id"]
        permissions = [("operate_task", "Can act on tasks in their publisher's place")]
        indexes = [
            models.Index(fields=["status", "id"], name="tasks_status"),
            # Walked by the reconciliation; what has ended is not in it.
            models.Index(
                fields=["id"], name="tasks_live", condition=Q(status__in=LIVE)
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="tasks_status_known", condition=Q(status__in=Status.values)
            ),
            models.CheckConstraint(
                name="tasks_template_known", condition=Q(template__in=Template.values)
            ),
            models.CheckConstraint(
                name="tasks_direct_has_hold_for",
                condition=Q(template=Template.CONTEST, hold_for__isnull=True)
                | Q(template=Template.DIRECT, hold_for__isnull=False),
            ),
            models.CheckConstraint(
                name="tasks_contest_not_held",
                condition=~Q(template=Template.CONTEST, status=Status.HELD),
            ),
            models.CheckConstraint(
                name="tasks_holder_with_status",
                condition=(_HAS_HOLDER & Q(holder__isnull=False))
                | (~_HAS_HOLDER & Q(holder__isnull=True)),
            ),
            models.CheckConstraint(
                name="tasks_open_until",
                condition=~Q(status=Status.OPEN) | Q(open_until__isnull=False),
            ),
            models.CheckConstraint(
                name="tasks_hold_until",
                condition=~Q(status=Status.HELD) | Q(hold_until__isnull=False),
            ),
            models.CheckConstraint(
                name="tasks_review_until",
                condition=~Q(status=Status.REVIEWING) | Q(review_until__isnull=False),
            ),
            models.CheckConstraint(
                name="tasks_ended_at",
                condition=Q(status__in=ENDED, ended_at__isnull=False)
                | Q(status__in=LIVE, ended_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"task {self.pk} ({redact(self.title)})"
