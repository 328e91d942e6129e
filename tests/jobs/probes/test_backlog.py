from __future__ import annotations

from collections.abc import Iterable

import pytest
from django.test import override_settings

from jobs.doctor import Finding, Level
from jobs.probes import backlog
from tests.jobs.factories import JobFactory, ago

pytestmark = pytest.mark.django_db


def only(findings: Iterable[Finding]) -> Finding:
    (finding,) = findings
    return finding


def test_nothing_due_is_fine():
    JobFactory(later=True)
    finding = only(backlog.lag())
    assert (finding.level, finding.message) == (Level.OK, "nothing is due")


def test_a_short_wait_is_fine():
    JobFactory(run_at=ago(seconds=20))
    finding = only(backlog.lag())
    assert finding.level is Level.OK
    assert finding.message == "the oldest due job has waited 20s"


def test_a_long_wait_is_a_warning():
    JobFactory(run_at=ago(minutes=20))
    finding = only(backlog.lag())
    assert finding.level is Level.WARNING
    assert "has waited 20m" in finding.message
    assert "none is running" in finding.message
    assert "JOBS_WORKERS" in finding.advice


def test_a_long_wait_names_the_job_that_runs_longest():
    JobFactory(run_at=ago(minutes=20))
    JobFactory(running=True)
    slow = JobFactory(running=True, type="test.slow", started_at=ago(hours=2))
    message = only(backlog.lag()).message
    assert f"test.slow {slow.pk}, for 2h in worker-1" in message


def test_jobs_that_run_for_less_than_an_hour_are_fine():
    JobFactory(running=True, started_at=ago(minutes=59))
    JobFactory(completed=True, started_at=ago(hours=5))
    finding = only(backlog.long_running())
    assert finding.level is Level.OK
    assert finding.message == "none has been running for more than 1h"


def test_jobs_that_run_for_longer_are_named_with_their_workers():
    second = JobFactory(running=True, started_at=ago(hours=2), leased_by="w-2")
    first = JobFactory(running=True, type="test.slow", started_at=ago(hours=30))
    found = list(backlog.long_running())
    assert [finding.level for finding in found] == [Level.WARNING] * 2
    assert [finding.message for finding in found] == [
        f"test.slow {first.pk} has been running for 1d 6h in worker-1",
        f"test.noop {second.pk} has been running for 2h in w-2",
    ]
    assert f"manage.py jobs cancel {first.pk}" in found[0].advice


def test_of_very_many_long_jobs_only_some_are_named():
    JobFactory.create_batch(7, running=True, started_at=ago(hours=2))
    *_, last = found = list(backlog.long_running())
    assert len(found) == 6
    assert last.message == "2 more have been running for more than 1h"


def test_no_expired_lease_is_fine():
    JobFactory(running=True)
    assert only(backlog.leases()).level is Level.OK


def test_a_lease_that_has_just_expired_is_a_warning():
    JobFactory(running=True, lease_until=ago(seconds=20))
    finding = only(backlog.leases())
    assert finding.level is Level.WARNING
    assert finding.message == "1 leases have expired, the first 20s ago"
    assert "within 1m" in finding.advice


def test_a_lease_that_the_reaper_leaves_is_an_error():
    JobFactory(running=True, lease_until=ago(minutes=10))
    finding = only(backlog.leases())
    assert finding.level is Level.ERROR
    assert "job_reaper has not returned them" in finding.message
    assert "manage.py runners run job_reaper" in finding.advice


@override_settings(JOBS_JOB_REAPER_ENABLED=False)
def test_an_expired_lease_without_a_reaper_is_an_error():
    JobFactory(running=True, lease_until=ago(seconds=20))
    finding = only(backlog.leases())
    assert finding.level is Level.ERROR
    assert "job_reaper is switched off" in finding.message


@pytest.mark.parametrize("state", ["completed", "cancelled", "dead"])
def test_jobs_within_their_retention_are_fine(state: str):
    JobFactory(**{state: True}, completed_at=ago(days=7))
    assert only(backlog.purge()).level is Level.OK


@pytest.mark.parametrize(
    ("state", "days"), [("completed", 10), ("cancelled", 10), ("dead", 33)]
)
def test_jobs_past_their_retention_are_a_warning(state: str, days: int):
    JobFactory(**{state: True}, completed_at=ago(days=days))
    finding = only(backlog.purge())
    assert finding.level is Level.WARNING
    assert finding.message.startswith("1 finished jobs are kept past their retention")
    assert "does not keep up or does not run" in finding.message
    assert "manage.py runners run job_purge" in finding.advice


@override_settings(JOBS_JOB_PURGE_ENABLED=False)
def test_a_purge_that_is_switched_off_is_named():
    JobFactory(completed=True, completed_at=ago(days=30))
    assert "job_purge is switched off" in only(backlog.purge()).message


def test_very_many_are_not_counted_exactly(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backlog, "_COUNTED", 2)
    JobFactory.create_batch(3, completed=True, completed_at=ago(days=30))
    assert only(backlog.purge()).message.startswith("2 or more finished jobs")


def test_no_dead_jobs_are_fine():
    assert only(backlog.dead()).message == "none in the last 1d"


def test_old_dead_jobs_are_only_counted():
    JobFactory(dead=True, completed_at=ago(days=3))
    finding = only(backlog.dead())
    assert (finding.level, finding.message) == (
        Level.OK,
        "none in the last 1d, 1 before",
    )


def test_dead_jobs_are_named_by_type_and_error():
    JobFactory.create_batch(3, dead=True, last_error="ValueError: broken\nmore")
    JobFactory(dead=True, type="test.other", last_error="KeyError: 'x'")
    first, second = backlog.dead()
    assert first.level is Level.WARNING
    assert (
        first.message
        == "3 jobs of type test.noop died in the last 1d: ValueError: broken"
    )
    assert "manage.py jobs retry --all --type test.noop" in first.advice
    assert "test.other" in second.message
