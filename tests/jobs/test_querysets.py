from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db.models.functions import Now

from jobs.enqueue import NewJob, enqueue_many
from jobs.models import Job, Status, WorkerProcess

pytestmark = pytest.mark.django_db

HOUR = dt.timedelta(hours=1)


@pytest.fixture(autouse=True)
def one_of_each(noop: str) -> None:
    ids = enqueue_many(
        [
            NewJob(type=noop, ref_id=name)
            for name in (
                "due",
                "future",
                "running",
                "expired",
                "completed",
                "dead",
                "cancelled",
            )
        ]
    )
    changes: list[dict[str, Any]] = [
        {},
        {"run_at": Now() + HOUR},
        {"status": Status.RUNNING, "lease_until": Now() + HOUR},
        {"status": Status.RUNNING, "lease_until": Now() - HOUR},
        {"status": Status.COMPLETED, "completed_at": Now()},
        {"status": Status.DEAD, "completed_at": Now()},
        {"status": Status.CANCELLED, "completed_at": Now()},
    ]
    for job_id, change in zip(ids, changes, strict=True):
        if change:
            Job.objects.filter(pk=job_id).update(**change)


@pytest.mark.parametrize(
    ("verb", "names"),
    [
        ("pending", {"due", "future"}),
        ("due", {"due"}),
        ("running", {"running", "expired"}),
        ("live", {"due", "future", "running", "expired"}),
        ("expired", {"expired"}),
        ("dead", {"dead"}),
        ("retryable", {"dead", "cancelled"}),
        ("repeatable", {"dead", "completed"}),
    ],
)
def test_each_verb_finds_its_own(verb: str, names: set[str]) -> None:
    assert set(getattr(Job.objects, verb)().values_list("ref_id", flat=True)) == names


def test_counts_by_status() -> None:
    assert Job.objects.count_by_status() == {
        "pending": 2,
        "running": 2,
        "completed": 1,
        "dead": 1,
        "cancelled": 1,
    }


def test_workers_are_alive_by_their_heartbeat() -> None:
    WorkerProcess.objects.create(name="a", host="h", pid=1, threads=1)
    WorkerProcess.objects.create(
        name="b", host="h", pid=2, threads=1, beat_at=Now() - HOUR
    )
    minute = dt.timedelta(minutes=1)
    assert [w.name for w in WorkerProcess.objects.alive(minute)] == ["a"]
    assert [w.name for w in WorkerProcess.objects.lost(minute)] == ["b"]
