from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from jobs import registry, stats
from jobs.heartbeat import alive_within
from jobs.models import Priority
from tests.jobs.factories import (
    AttemptFactory,
    JobFactory,
    RunnerStateFactory,
    WorkerProcessFactory,
    ago,
)

pytestmark = pytest.mark.django_db

MINUTE = dt.timedelta(minutes=1)


def test_without_due_jobs_there_is_no_lag():
    JobFactory(later=True)
    JobFactory(running=True, run_at=ago(hours=1))
    assert stats.lag() is None


def test_the_lag_is_that_of_the_oldest_due_job_of_any_queue_and_priority():
    JobFactory(run_at=ago(minutes=1))
    JobFactory(run_at=ago(minutes=10), queue="mail", priority=Priority.LOW)
    lag = stats.lag()
    assert lag is not None
    assert 10 * MINUTE <= lag < 11 * MINUTE


def test_every_status_is_counted_those_without_jobs_too():
    JobFactory.create_batch(2)
    JobFactory(running=True)
    JobFactory.create_batch(3, dead=True)
    assert stats.count_by_status() == {
        "pending": 2,
        "running": 1,
        "completed": 0,
        "dead": 3,
        "cancelled": 0,
    }


def test_the_load_of_each_queue():
    JobFactory(run_at=ago(minutes=2))
    JobFactory(later=True)
    JobFactory(running=True)
    JobFactory(running=True, queue="mail")
    JobFactory(dead=True, queue="gone")
    default, mail = stats.load_by_queue()
    assert (default.queue, default.pending, default.due, default.running) == (
        "default",
        2,
        1,
        1,
    )
    assert default.lag is not None
    assert 2 * MINUTE <= default.lag < 3 * MINUTE
    assert mail == stats.QueueLoad(queue="mail", running=1)


def test_dead_jobs_are_grouped_by_type_and_first_line():
    JobFactory.create_batch(2, dead=True, last_error="ValueError: broken\nline 1")
    JobFactory(dead=True, last_error="ValueError: broken\nline 2", completed_at=ago())
    JobFactory(dead=True, last_error="KeyError: 'x'")
    JobFactory(dead=True, type="test.other", last_error="ValueError: broken")
    groups = {(g.type, g.error): g.count for g in stats.dead_groups()}
    assert groups == {
        ("test.noop", "ValueError: broken"): 3,
        ("test.noop", "KeyError: 'x'"): 1,
        ("test.other", "ValueError: broken"): 1,
    }
    assert stats.dead_groups()[0].count == 3
    assert stats.dead_groups()[0].newest > ago(minutes=1)


def test_dead_jobs_can_be_grouped_for_the_last_hours_only():
    JobFactory(dead=True, completed_at=ago(hours=3))
    assert stats.dead_groups(within=dt.timedelta(hours=2)) == []
    assert len(stats.dead_groups(within=dt.timedelta(hours=4))) == 1


def test_only_the_newest_dead_jobs_are_looked_at(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stats, "DEAD_LOOKED_AT", 1)
    JobFactory(dead=True, last_error="old", completed_at=ago(hours=3))
    JobFactory(dead=True, last_error="new")
    assert [group.error for group in stats.dead_groups()] == ["new"]


def test_neither_lag_nor_counts_read_the_rows(django_assert_max_num_queries: Any):
    AttemptFactory.create_batch(3)
    with CaptureQueriesContext(connection) as queries:
        stats.lag()
        stats.count_by_status()
    assert len(queries) <= 5
    assert not [query for query in queries if "payload" in query["sql"]]


def test_a_worker_is_alive_while_it_gives_heartbeats():
    WorkerProcessFactory(name="a")
    WorkerProcessFactory(name="b", stopping=True)
    WorkerProcessFactory(name="c", beat_at=ago(seconds=1) - alive_within())
    assert [(w.name, w.alive, w.state) for w in stats.workers()] == [
        ("a", True, "alive"),
        ("b", True, "stopping"),
        ("c", False, "lost"),
    ]


@pytest.fixture
def only_reaper() -> None:
    reaper = registry.runners()["job_reaper"]
    registry._runners.clear()
    registry._runners["job_reaper"] = reaper


@pytest.mark.usefixtures("only_reaper")
def test_a_runner_without_a_row_is_not_scheduled():
    (status,) = stats.runners()
    assert (status.name, status.state, status.late) == (
        "job_reaper",
        "not scheduled",
        None,
    )
    assert status.last_outcome == "never"
    assert status.took is None


@pytest.mark.usefixtures("only_reaper")
@pytest.mark.parametrize(
    ("seconds_late", "state"),
    [(-30, "on schedule"), (30, "on schedule"), (300, "overdue")],
    ids=["waits", "is a little late", "missed a whole tick"],
)
def test_a_runner_is_overdue_when_it_missed_a_whole_tick(
    seconds_late: float, state: str
):
    RunnerStateFactory(name="job_reaper", next_run_at=ago(seconds=seconds_late))
    (status,) = stats.runners()
    assert status.state == state


@pytest.mark.usefixtures("only_reaper")
@override_settings(JOBS_JOB_REAPER_ENABLED=False)
def test_a_runner_that_is_switched_off_is_never_overdue():
    RunnerStateFactory(name="job_reaper", next_run_at=ago(days=5))
    (status,) = stats.runners()
    assert (status.state, status.overdue) == ("switched off", False)


@pytest.mark.usefixtures("only_reaper")
def test_a_runner_tells_how_long_its_last_tick_took():
    start = ago(minutes=2)
    RunnerStateFactory(
        name="job_reaper",
        last_started_at=start,
        last_finished_at=start + MINUTE,
        last_outcome="completed",
        last_summary={"returned": 1},
    )
    (status,) = stats.runners()
    assert (status.took, status.last_summary) == (MINUTE, {"returned": 1})


@pytest.mark.usefixtures("only_reaper")
def test_a_tick_under_way_has_taken_no_time_yet():
    RunnerStateFactory(
        name="job_reaper", last_started_at=ago(), last_finished_at=ago(hours=1)
    )
    assert stats.runners()[0].took is None


def test_due_jobs_of_types_and_queues_that_nobody_knows():
    JobFactory.create_batch(2, type="test.new", queue="host:b", run_at=ago(minutes=3))
    JobFactory(type="test.new", later=True)
    JobFactory(type="test.noop")
    ((name, count, age),) = stats.unserved_types(["test.noop"])
    assert (name, count) == ("test.new", 2)
    assert 3 * MINUTE <= age < 4 * MINUTE
    assert [row[:2] for row in stats.unserved_queues(["default"])] == [("host:b", 2)]


def test_a_worker_that_has_stalled_is_told_by_its_parts():
    WorkerProcessFactory(name="a", stalled=["acw-listener", "acw-periodic"])
    WorkerProcessFactory(name="b", stalled=["acw-listener"], lost=True)
    WorkerProcessFactory(name="c", stalled=["acw-listener"], host="another")
    WorkerProcessFactory(name="d")
    states = [(worker.name, worker.state) for worker in stats.workers()]
    assert states == [("a", "stalled"), ("b", "lost"), ("c", "stalled"), ("d", "alive")]
    assert stats.stalled_parts(host="test-host") == [
        "worker a: no progress in acw-listener, acw-periodic"
    ]
