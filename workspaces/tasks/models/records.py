"""What is handed in, reported and offered, and the history: rows that are only added and decided, never rewritten."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from workspaces.tasks.models.agent import Agent
from workspaces.tasks.models.task import Task
from workspaces.tasks.states import Status

REFERENCE_MAX_LENGTH = 500
ACTOR_MAX_LENGTH = 200


class Submission(models.Model):
    """What an agent hands in. ``reference`` says where the work is: a branch, a commit, a URL.

    ``done`` are the numbers (from 1) of the checklist's items that the agent claims to have done.
    """

    class Decision(models.TextChoices):
        """``SUPERSEDED``: the same agent has entered the contest with something newer."""

        PENDING = "pending"
        ACCEPTED = "accepted"
        REJECTED = "rejected"
        SUPERSEDED = "superseded"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="submissions")
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="submissions"
    )
    text = models.TextField(blank=True, db_default="")
    reference = models.CharField(
        max_length=REFERENCE_MAX_LENGTH, blank=True, db_default=""
    )
    done = models.JSONField(default=list, blank=True)
    decision = models.CharField(
        max_length=10, choices=Decision, db_default=Decision.PENDING
    )
    reason = models.TextField(blank=True, db_default="")
    created_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[models.Manager[Submission]] = models.Manager()

    class Meta:
        db_table = "task_submissions"
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                name="task_submissions_decision_known",
                condition=Q(
                    decision__in=["pending", "accepted", "rejected", "superseded"]
                ),
            ),
            models.CheckConstraint(
                name="task_submissions_decided_at",
                condition=Q(decision="pending", decided_at__isnull=True)
                | (~Q(decision="pending") & Q(decided_at__isnull=False)),
            ),
            models.UniqueConstraint(
                fields=["task"],
                condition=Q(decision="accepted"),
                name="task_submissions_one_accepted",
            ),
            models.UniqueConstraint(
                fields=["task", "agent"],
                condition=Q(decision="pending"),
                name="task_submissions_one_pending_each",
            ),
        ]

    def __str__(self) -> str:
        return f"submission {self.pk}"


class Checkpoint(models.Model):
    """A holder's word on how it goes."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="checkpoints")
    agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="checkpoints"
    )
    note = models.TextField(blank=True, db_default="")
    created_at = models.DateTimeField()

    objects: ClassVar[models.Manager[Checkpoint]] = models.Manager()

    class Meta:
        db_table = "task_checkpoints"
        ordering = ["id"]

    def __str__(self) -> str:
        return f"checkpoint {self.pk}"


class Transfer(models.Model):
    """An offer of the holder to hand the task over, pending until it is answered; one at a time."""

    class State(models.TextChoices):
        """``EXPIRED`` also where the task went elsewhere meanwhile."""

        PENDING = "pending"
        ACCEPTED = "accepted"
        DECLINED = "declined"
        WITHDRAWN = "withdrawn"
        EXPIRED = "expired"

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="transfers")
    from_agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="transfers_offered"
    )
    to_agent = models.ForeignKey(
        Agent, on_delete=models.PROTECT, related_name="transfers_received"
    )
    note = models.TextField(blank=True, db_default="")
    status = models.CharField(max_length=9, choices=State, db_default=State.PENDING)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[models.Manager[Transfer]] = models.Manager()

    class Meta:
        db_table = "task_transfers"
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                name="task_transfers_status_known",
                condition=Q(
                    status__in=[
                        "pending",
                        "accepted",
                        "declined",
                        "withdrawn",
                        "expired",
                    ]
                ),
            ),
            models.CheckConstraint(
                name="task_transfers_answered_at",
                condition=Q(status="pending", answered_at__isnull=True)
                | (~Q(status="pending") & Q(answered_at__isnull=False)),
            ),
            models.UniqueConstraint(
                fields=["task"],
                condition=Q(status="pending"),
                name="task_transfers_one_pending",
            ),
        ]

    def __str__(self) -> str:
        return f"transfer {self.pk}"


class TaskEvent(models.Model):
    """One thing that was done to a task; ``actor`` is an agent's, operator's or the worker's name at that time."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, related_name="events")
    action = models.CharField(max_length=20)
    source = models.CharField(max_length=9, choices=Status, null=True)
    target = models.CharField(max_length=9, choices=Status)
    actor = models.CharField(max_length=ACTOR_MAX_LENGTH)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    objects: ClassVar[models.Manager[TaskEvent]] = models.Manager()

    class Meta:
        db_table = "task_events"
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"
