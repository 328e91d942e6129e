"""The tables of the queue: fields, constraints, indexes. What is done with them lives elsewhere.

Every time is the database's, so that no host's clock decides anything.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now

from jobs.identifiers import uuid7
from jobs.querysets import JobQuerySet, WorkerProcessQuerySet

UNIQUE_KEY_MAX_LENGTH = 200
REF_ID_MAX_LENGTH = 200
NAME_MAX_LENGTH = 100
QUEUE_MAX_LENGTH = 300
"""Room for ``host:`` and the longest name that a host can have."""


class Priority(models.IntegerChoices):
    """The levels at which a job may run; the lowest number runs first.

    They are few and fixed, because a claim looks into each level by itself.
    """

    URGENT = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3


class Status(models.TextChoices):
    """Where a job is in its life."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    DEAD = "dead"
    CANCELLED = "cancelled"


LIVE = (Status.PENDING, Status.RUNNING)
TERMINAL = (Status.COMPLETED, Status.DEAD, Status.CANCELLED)


class Job(models.Model):
    """One job; operators query this table by name, see ``docs/operations.md``.

    In ``ref_id``, ``leased_by`` and ``unique_key`` null means none: about no row, held by nobody, not unique.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    type = models.CharField(max_length=NAME_MAX_LENGTH)
    ref_id = models.CharField(max_length=REF_ID_MAX_LENGTH, null=True, blank=True)
    queue = models.CharField(max_length=QUEUE_MAX_LENGTH, db_default="default")
    priority = models.SmallIntegerField(choices=Priority, db_default=Priority.NORMAL)
    payload = models.JSONField(default=dict, db_default={})
    status = models.CharField(max_length=9, choices=Status, db_default=Status.PENDING)
    attempts = models.IntegerField(db_default=0)
    max_attempts = models.IntegerField(db_default=5)
    run_at = models.DateTimeField(db_default=Now())
    leased_by = models.CharField(max_length=QUEUE_MAX_LENGTH, null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_seq = models.BigIntegerField(db_default=0)
    unique_key = models.CharField(
        max_length=UNIQUE_KEY_MAX_LENGTH, null=True, blank=True
    )
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True, db_default="")
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(db_default=Now())

    deduplicated = False
    """Set by ``enqueue``: this job was live already and nothing new was enqueued."""

    objects: ClassVar[JobQuerySet] = JobQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "jobs"
        permissions = [
            ("retry_job", "Can retry dead and cancelled jobs"),
            ("cancel_job", "Can cancel pending and running jobs"),
            ("run_now_job", "Can make pending jobs due now"),
        ]
        indexes = [
            # The claim walks this one; only rows that wait are in it.
            models.Index(
                fields=["queue", "priority", "run_at", "id"],
                name="jobs_due",
                condition=models.Q(status=Status.PENDING),
            ),
            # lease_until stays out of every index, or extending a lease could not be a HOT update.
            models.Index(
                fields=["id"],
                name="jobs_running",
                condition=models.Q(status=Status.RUNNING),
            ),
            models.Index(
                fields=["ref_id"],
                name="jobs_ref_id",
                condition=models.Q(ref_id__isnull=False),
            ),
            # What waits on behalf of one row, e.g. all that is to go to one receiver.
            models.Index(
                fields=["type", "ref_id", "id"],
                name="jobs_pending_ref",
                condition=models.Q(status=Status.PENDING, ref_id__isnull=False),
            ),
            # And what died on its behalf. Only a death writes to it.
            models.Index(
                fields=["type", "ref_id", "id"],
                name="jobs_dead_ref",
                condition=models.Q(status=Status.DEAD, ref_id__isnull=False),
            ),
            # Purge and the lists of dead jobs read it by status, newest or oldest first.
            models.Index(
                fields=["status", "completed_at"],
                name="jobs_finished",
                condition=models.Q(completed_at__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["unique_key"],
                name="jobs_unique_key_live",
                condition=models.Q(unique_key__isnull=False, status__in=LIVE),
            ),
            models.CheckConstraint(
                name="jobs_priority_known",
                condition=models.Q(priority__in=Priority.values),
            ),
            models.CheckConstraint(
                name="jobs_attempts_not_negative", condition=models.Q(attempts__gte=0)
            ),
            models.CheckConstraint(
                name="jobs_max_attempts_positive",
                condition=models.Q(max_attempts__gte=1),
            ),
            # A terminal row without its time would never be purged. Also refuses an unknown status.
            models.CheckConstraint(
                name="jobs_completed_at_set_when_terminal",
                condition=models.Q(status__in=TERMINAL, completed_at__isnull=False)
                | models.Q(status__in=LIVE, completed_at__isnull=True),
            ),
            models.CheckConstraint(
                name="jobs_lease_set_when_running",
                condition=models.Q(status=Status.RUNNING, lease_until__isnull=False)
                | (
                    ~models.Q(status=Status.RUNNING)
                    & models.Q(lease_until__isnull=True)
                ),
            ),
            # Or its next execution would be cancelled by a request that was about another.
            models.CheckConstraint(
                name="jobs_pending_without_cancel_request",
                condition=~models.Q(status=Status.PENDING)
                | models.Q(cancel_requested_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.id}"


class Attempt(models.Model):
    """One execution that did not complete its job."""

    # A trigger, made in the migration, in place of the constraint: an operator's plain DELETE FROM jobs
    # takes the attempts along.
    job = models.ForeignKey(
        Job, on_delete=models.CASCADE, related_name="attempt_set", db_constraint=False
    )
    number = models.IntegerField()
    worker = models.CharField(max_length=QUEUE_MAX_LENGTH, blank=True, db_default="")
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(db_default=Now())
    error = models.TextField(db_default="")
    traceback = models.TextField(blank=True, db_default="")

    class Meta:
        db_table = "job_attempts"
        ordering = ["id"]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.job_id}"


class RunnerState(models.Model):
    """The schedule of one periodic runner, shared by all processes."""

    class Outcome(models.TextChoices):
        NEVER = "never"
        RUNNING = "running"
        COMPLETED = "completed"
        FAILED = "failed"

    name = models.CharField(max_length=NAME_MAX_LENGTH, primary_key=True)
    interval = models.DurationField()
    next_run_at = models.DateTimeField(db_default=Now())
    last_started_at = models.DateTimeField(null=True, blank=True)
    last_finished_at = models.DateTimeField(null=True, blank=True)
    last_worker = models.CharField(
        max_length=QUEUE_MAX_LENGTH, blank=True, db_default=""
    )
    last_outcome = models.CharField(
        max_length=9, choices=Outcome, db_default=Outcome.NEVER
    )
    tries = models.IntegerField(db_default=0)
    last_summary = models.JSONField(default=dict, db_default={}, blank=True)
    last_error = models.TextField(blank=True, db_default="")

    class Meta:
        db_table = "job_runners"
        ordering = ["name"]
        verbose_name = "runner"
        permissions = [("run_runnerstate", "Can make a runner tick now")]

    def __str__(self) -> str:
        return self.name


class WorkerProcess(models.Model):
    """One ``runjobs`` process that is alive, or was when it last gave a heartbeat."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=QUEUE_MAX_LENGTH, unique=True)
    host = models.CharField(max_length=QUEUE_MAX_LENGTH)
    pid = models.IntegerField()
    threads = models.IntegerField()
    queues = models.JSONField(default=list)
    types = models.JSONField(default=list)
    stopping = models.BooleanField(db_default=False)
    stalled = models.JSONField(default=list, db_default=[])
    started_at = models.DateTimeField(db_default=Now())
    beat_at = models.DateTimeField(db_default=Now())

    objects: ClassVar[WorkerProcessQuerySet] = WorkerProcessQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        db_table = "job_workers"
        ordering = ["name"]
        verbose_name_plural = "worker processes"

    def __str__(self) -> str:
        return self.name
