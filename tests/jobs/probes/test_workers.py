from __future__ import annotations

from collections.abc import Iterable

import pytest
from django.test import override_settings

from jobs import registry
from jobs.doctor import Finding, Level
from jobs.probes import workers
from tests.jobs.factories import (
    JobFactory,
    RunnerStateFactory,
    WorkerProcessFactory,
    ago,
    ahead,
)

pytestmark = pytest.mark.django_db


def only(findings: Iterable[Finding]) -> Finding:
    (finding,) = findings
    return finding


def test_live_workers_are_counted():
    WorkerProcessFactory.create_batch(2, threads=3)
    finding = only(workers.workers())
    assert (finding.level, finding.message) == (Level.OK, "2 alive, with 6 threads")


def test_due_jobs_without_a_worker_are_an_error():
    JobFactory.create_batch(2)
    finding = only(workers.workers())
    assert finding.level is Level.ERROR
    assert finding.message == "none is alive, and 2 jobs are due"
    assert "manage.py runjobs" in finding.advice


def test_no_worker_and_nothing_due_is_a_warning():
    assert only(workers.workers()).level is Level.WARNING


@override_settings(JOBS_ENABLED=False)
def test_switched_off_is_said():
    JobFactory()
    finding = only(workers.workers())
    assert finding.level is Level.WARNING
    assert "JOBS_ENABLED is false" in finding.message
    assert "1 jobs are due" in finding.message


def test_a_lost_worker_is_a_warning():
    WorkerProcessFactory()
    WorkerProcessFactory(name="w-lost", lost=True)
    alive, lost = workers.workers()
    assert alive.level is Level.OK
    assert lost.level is Level.WARNING
    assert lost.message == "w-lost is lost: its last heartbeat was 1h ago"


def test_a_stalled_worker_is_an_error():
    WorkerProcessFactory(name="w-stalled", stalled=["acw-listener"])
    WorkerProcessFactory(name="w-lost", stalled=["acw-listener"], lost=True)
    findings = {finding.message: finding for finding in workers.workers()}
    stalled = findings["w-stalled has stalled: no progress in acw-listener"]
    assert stalled.level is Level.ERROR
    assert "jobs.module.stalled" in stalled.advice
    assert not [message for message in findings if "w-lost has stalled" in message]


def test_served_queues_are_fine():
    WorkerProcessFactory(queues=["default"])
    JobFactory(run_at=ago(hours=1))
    assert only(workers.queues()).level is Level.OK


def test_due_jobs_in_a_queue_that_nobody_serves_are_an_error():
    WorkerProcessFactory(queues=["default"])
    JobFactory(queue="mail", run_at=ago(hours=1))
    finding = only(workers.queues())
    assert finding.level is Level.ERROR
    assert "1 jobs are due in queue mail for up to 1h" in finding.message
    assert "mail among them" in finding.advice


def test_jobs_of_another_host_name_that_host():
    WorkerProcessFactory(queues=["default", "host:test-host"])
    JobFactory(queue="host:far-away", run_at=ago(hours=1))
    assert "on the host far-away" in only(workers.queues()).advice


def test_a_queue_that_is_new_has_time_until_the_next_heartbeat():
    WorkerProcessFactory(queues=["default"])
    JobFactory(queue="new")
    assert only(workers.queues()).level is Level.OK


def test_types_with_a_handler_are_fine():
    WorkerProcessFactory(types=["test.noop"])
    JobFactory()
    assert only(workers.types()).level is Level.OK


@pytest.mark.parametrize(
    ("minutes", "level"),
    [(1, Level.WARNING), (60, Level.ERROR)],
    ids=["within the grace", "past the grace"],
)
def test_a_type_without_a_handler_is_named(minutes: int, level: Level):
    WorkerProcessFactory(types=["test.noop"])
    WorkerProcessFactory(types=["test.new"], lost=True)
    JobFactory(type="test.new", run_at=ago(minutes=minutes))
    finding = only(workers.types())
    assert finding.level is level
    assert "of type test.new are due" in finding.message
    assert "JOBS_UNKNOWN_TYPE_GRACE" in finding.advice


@pytest.mark.parametrize("probe", [workers.queues, workers.types])
def test_without_a_worker_queues_and_types_have_nothing_to_add(probe):
    JobFactory(type="test.new", queue="mail", run_at=ago(hours=1))
    assert only(probe()).level is Level.OK


@pytest.fixture
def only_reaper() -> None:
    reaper = registry.runners()["job_reaper"]
    registry._runners.clear()
    registry._runners["job_reaper"] = reaper


@pytest.mark.usefixtures("only_reaper")
class TestRunners:
    def test_on_schedule(self):
        RunnerStateFactory(last_started_at=ago(seconds=9), last_outcome="completed")
        finding = only(workers.runners())
        assert (finding.level, finding.message) == (Level.OK, "1 on schedule")

    def test_never_scheduled(self):
        finding = only(workers.runners())
        assert finding.level is Level.WARNING
        assert finding.message == "never run and not scheduled: job_reaper"

    def test_overdue(self):
        RunnerStateFactory(next_run_at=ago(hours=2), last_started_at=ago(hours=3))
        finding = only(workers.runners())
        assert finding.level is Level.ERROR
        assert "job_reaper is overdue by 2h, it runs every 1m" in finding.message
        assert "manage.py runners run job_reaper" in finding.advice

    def test_overdue_and_never_run(self):
        RunnerStateFactory(next_run_at=ago(hours=2))
        assert "overdue by 2h and has never run" in only(workers.runners()).message

    def test_switched_off(self):
        RunnerStateFactory(next_run_at=ago(hours=2))
        with override_settings(JOBS_JOB_REAPER_ENABLED=False):
            finding = only(workers.runners())
        assert finding.level is Level.WARNING
        assert finding.message == "job_reaper is switched off"
        assert "JOBS_JOB_REAPER_ENABLED=true" in finding.advice

    def test_failed(self):
        RunnerStateFactory(
            next_run_at=ahead(seconds=9),
            last_outcome="failed",
            last_error="OSError: full",
        )
        finding = only(workers.runners())
        assert finding.level is Level.ERROR
        assert "job_reaper failed at its last tick: OSError: full" in finding.message
