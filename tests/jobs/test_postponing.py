from __future__ import annotations

import datetime as dt

import pytest
from django.db import transaction
from django.utils import timezone

from jobs import wakeup
from jobs.enqueue import NewJob, enqueue_many
from jobs.models import Attempt, Job, Status
from jobs.postponing import bring_forward, postpone
from tests.jobs.support import add

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noop")]

MINUTE = dt.timedelta(minutes=1)


def delays() -> list[int]:
    """Of all jobs in their order: minutes from now until they are due."""
    now = timezone.now()
    found = Job.objects.order_by("id").values_list("run_at", flat=True)
    return [round((run_at - now) / MINUTE) for run_at in found]


def in_minutes(*minutes: int, ref_id: str = "1") -> None:
    enqueue_many(
        NewJob(type="test.noop", ref_id=ref_id, run_at=timezone.now() + n * MINUTE)
        for n in minutes
    )


def test_what_is_due_waits_each_longer_than_the_older_one():
    in_minutes(-3, -1, 30, -2)

    moved = postpone(
        "test.noop", "1", delay=5 * MINUTE, spacing=2 * MINUTE, spread=3 * MINUTE
    )

    assert moved == 3
    assert delays() == [5, 7, 30, 8]  # none longer than the spread allows
    assert set(Job.objects.values_list("attempts", flat=True)) == {0}


def test_no_more_than_asked_for_are_postponed_the_oldest_first():
    in_minutes(-1, -1, -1)

    assert postpone("test.noop", "1", delay=5 * MINUTE, at_most=2) == 2
    assert delays() == [5, 5, -1]


def test_the_oldest_are_brought_forward_and_none_is_made_to_wait():
    in_minutes(10, -2, 30, 40)

    moved = bring_forward("test.noop", "1", count=3, spacing=MINUTE)

    assert moved == 2
    assert delays() == [0, -2, 2, 40]


@pytest.mark.parametrize("verb", ["postpone", "bring forward"])
def test_one_that_has_failed_comes_back_when_it_was_to(verb: str):
    due = -1 if verb == "postpone" else 9
    in_minutes(due, due)
    failed, turned_away = Job.objects.order_by("id")
    before = timezone.now() - 3 * MINUTE
    Job.objects.update(attempts=1, started_at=before)
    for job in (failed, turned_away):
        Attempt.objects.create(job=job, number=1, started_at=before)
    # And has run since, without failing.
    Job.objects.filter(pk=turned_away.pk).update(started_at=timezone.now())

    if verb == "postpone":
        assert postpone("test.noop", "1", delay=5 * MINUTE) == 1
        assert delays() == [due, 5]
    else:
        assert bring_forward("test.noop", "1") == 1
        assert delays() == [due, 0]
    assert list(Job.objects.waiting()) == [turned_away]


@pytest.mark.parametrize("verb", ["postpone", "bring forward"])
def test_others_and_what_runs_or_has_ended_are_left_alone(verb: str):
    due = -1 if verb == "postpone" else 9
    in_minutes(due, ref_id="2")
    add(run_at=timezone.now() + due * MINUTE)
    in_minutes(due, due)
    running, ended = Job.objects.order_by("id")[2:]
    Job.objects.filter(pk=running.pk).update(
        status=Status.RUNNING, lease_until=timezone.now()
    )
    Job.objects.filter(pk=ended.pk).update(
        status=Status.CANCELLED, completed_at=timezone.now()
    )

    if verb == "postpone":
        assert postpone("test.noop", "1", delay=5 * MINUTE) == 0
    else:
        assert bring_forward("test.noop", "1", count=9) == 0
    assert delays() == [due] * 4


@pytest.mark.django_db(transaction=True)
def test_workers_hear_of_what_was_brought_forward_once_it_is_committed(
    monkeypatch: pytest.MonkeyPatch,
):
    woken: list[list[str]] = []
    monkeypatch.setattr(wakeup, "wake", lambda queues: woken.append(list(queues)))
    in_minutes(10)
    woken.clear()

    with transaction.atomic():
        bring_forward("test.noop", "1", count=1)
        assert woken == []
    assert woken == [["default"]]

    bring_forward("test.noop", "1", count=1)
    assert len(woken) == 1
