"""Rows of the queue in every state, written past ``enqueue``: for tests that need a table as it may be found."""

from __future__ import annotations

import datetime as dt
import uuid

import factory
from django.db.models.functions import Now

from jobs.models import Attempt, Job, RunnerState, Status, WorkerProcess


def ago(**duration: float) -> dt.datetime:
    """The time that lies so far back: ``ago(hours=2)``."""
    return dt.datetime.now(dt.UTC) - dt.timedelta(**duration)


def ahead(**duration: float) -> dt.datetime:
    """The time that lies so far ahead: ``ahead(hours=2)``."""
    return dt.datetime.now(dt.UTC) + dt.timedelta(**duration)


class JobFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    """A job that is pending and due; the traits are the other states."""

    class Meta:
        model = Job

    type = "test.noop"
    run_at = factory.LazyFunction(lambda: ago(seconds=1))

    class Params:
        later = factory.Trait(run_at=factory.LazyFunction(lambda: ahead(hours=1)))
        running = factory.Trait(
            status=Status.RUNNING,
            attempts=1,
            lease_seq=1,
            leased_by="worker-1",
            lease_until=factory.LazyFunction(lambda: ahead(minutes=5)),
            started_at=factory.LazyFunction(lambda: ago(seconds=10)),
        )
        completed = factory.Trait(
            status=Status.COMPLETED,
            attempts=1,
            lease_seq=1,
            started_at=factory.LazyFunction(lambda: ago(seconds=10)),
            completed_at=factory.LazyFunction(lambda: ago(seconds=5)),
        )
        dead = factory.Trait(
            status=Status.DEAD,
            attempts=5,
            lease_seq=5,
            last_error="ValueError: broken",
            started_at=factory.LazyFunction(lambda: ago(seconds=10)),
            completed_at=factory.LazyFunction(lambda: ago(seconds=5)),
        )
        cancelled = factory.Trait(
            status=Status.CANCELLED,
            completed_at=factory.LazyFunction(lambda: ago(seconds=5)),
        )


class AttemptFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    """A failed attempt, of a dead job where none is given."""

    class Meta:
        model = Attempt

    job = factory.SubFactory(JobFactory, dead=True)
    number = factory.Sequence(lambda n: n + 1)
    worker = "worker-1"
    started_at = factory.LazyFunction(lambda: ago(seconds=10))
    error = "ValueError: broken"
    traceback = "Traceback (most recent call last):\nValueError: broken\n"


class RunnerStateFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    """A runner that is due in an hour and has never run."""

    class Meta:
        model = RunnerState

    name = "job_reaper"
    interval = dt.timedelta(minutes=1)
    next_run_at = factory.LazyFunction(lambda: ahead(hours=1))


class WorkerProcessFactory(factory.django.DjangoModelFactory):  # type: ignore[misc] # factory is untyped
    """A worker that has just given its heartbeat; ``lost`` has not for an hour."""

    class Meta:
        model = WorkerProcess

    name = factory.Sequence(lambda n: f"test-host:{n}:{uuid.uuid4().hex[:8]}")
    host = "test-host"
    pid = 4711
    threads = 2
    queues = ["default"]
    types = ["test.noop"]
    beat_at = Now()

    class Params:
        lost = factory.Trait(beat_at=factory.LazyFunction(lambda: ago(hours=1)))
