"""The questions that people and the doctor ask of the queue's tables, as SQL."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

if TYPE_CHECKING:
    from jobs.models import Job, WorkerProcess


class JobQuerySet(models.QuerySet["Job"]):
    """Jobs by where they are in their life."""

    def pending(self) -> JobQuerySet:
        return self.filter(status="pending")

    def due(self) -> JobQuerySet:
        """Pending and not before its time."""
        return self.pending().filter(run_at__lte=Now())

    def waiting(self) -> JobQuerySet:
        """Pending, but for those that have failed and wait for their next try."""
        from jobs.models import Attempt

        failed_last = Attempt.objects.filter(
            job_id=OuterRef("pk"), started_at=OuterRef("started_at")
        )
        return self.pending().exclude(Q(attempts__gt=0) & Exists(failed_last))

    def live(self) -> JobQuerySet:
        """Pending or running."""
        return self.filter(status__in=("pending", "running"))

    def running(self) -> JobQuerySet:
        return self.filter(status="running")

    def expired(self) -> JobQuerySet:
        """Running under a lease that nobody extended in time."""
        return self.running().filter(lease_until__lt=Now())

    def dead(self) -> JobQuerySet:
        # The time is always set; that it is asked for lets the index of finished jobs be used.
        return self.filter(status="dead", completed_at__isnull=False)

    def retryable(self) -> JobQuerySet:
        """What an operator may retry: never a live job, never one that completed."""
        return self.filter(status__in=("dead", "cancelled"))

    def repeatable(self) -> JobQuerySet:
        """What may be done again where its type allows that: never a live job, never one that somebody cancelled."""
        return self.filter(status__in=("dead", "completed"))

    def count_by_status(self) -> dict[str, int]:
        """How many jobs there are in each status; statuses without a job are left out."""
        rows = self.order_by().values_list("status").annotate(n=models.Count("*"))
        return dict(rows)


class WorkerProcessQuerySet(models.QuerySet["WorkerProcess"]):
    """Worker processes by their heartbeat."""

    def alive(self, within: dt.timedelta) -> WorkerProcessQuerySet:
        """Those whose last heartbeat is at most ``within`` old."""
        return self.filter(beat_at__gte=Now() - within)

    def stalled(self, within: dt.timedelta) -> WorkerProcessQuerySet:
        """Those that live and say that a part of theirs makes no progress."""
        return self.alive(within).exclude(stalled=[])

    def lost(self, within: dt.timedelta) -> WorkerProcessQuerySet:
        """Those that gave no heartbeat for longer than ``within``."""
        return self.exclude(pk__in=self.alive(within).values("pk"))
