from __future__ import annotations

import datetime as dt
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from jobs import claims, leases, runners
from jobs.connection import QueueConnection
from jobs.enqueue import NewJob, enqueue_many
from jobs.events import LogEvent
from jobs.models import Attempt, Job, Status, WorkerProcess
from jobs.runners import job_purge, job_reaper
from jobs.signals import job_dead
from tests.jobs.support import claim_for, complete

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def deaths() -> Iterator[list[Any]]:
    told: list[Any] = []

    def receiver(**kwargs: Any) -> None:
        told.append((kwargs["job"].pk, kwargs["job"].status, kwargs["error"]))

    job_dead.connect(receiver)
    yield told
    job_dead.disconnect(receiver)


def leased(connection: QueueConnection, count: int = 1) -> list[leases.LeasedJob]:
    enqueue_many([NewJob(type="test.noop") for _ in range(count)])
    return claims.claim(connection, claim_for())


class TestReaper:
    def test_an_expired_lease_goes_back_with_its_attempt_spent(
        self,
        queue_connection: QueueConnection,
        noop: str,
        stop: threading.Event,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        (job,) = leased(queue_connection)
        Job.objects.update(lease_until=Now() - HOUR)
        with caplog.at_level(logging.WARNING, logger="jobs"):
            summary = job_reaper(stop)
        assert (summary["returned"], summary["dead"]) == (1, 0)
        stored = Job.objects.get()
        assert (stored.status, stored.attempts, stored.leased_by) == (
            Status.PENDING,
            1,
            None,
        )
        assert not Job.objects.due().exists()
        assert stored.last_error.startswith("worker lost: w1")
        assert Attempt.objects.get().number == 1
        assert [record.msg for record in caplog.records] == [LogEvent.LEASE_EXPIRED]
        # The stale worker may write nothing any more.
        assert complete(queue_connection, job) == set()

    def test_a_lease_that_holds_is_left(
        self, queue_connection: QueueConnection, noop: str, stop: threading.Event
    ) -> None:
        leased(queue_connection)
        assert job_reaper(stop)["returned"] == 0
        assert Job.objects.running().count() == 1

    def test_crashes_that_used_up_the_attempts_end_in_death(
        self,
        queue_connection: QueueConnection,
        noop: str,
        stop: threading.Event,
        deaths: list[Any],
    ) -> None:
        (job,) = leased(queue_connection)
        Job.objects.update(lease_until=Now() - HOUR, max_attempts=1)
        assert job_reaper(stop)["dead"] == 1
        stored = Job.objects.get()
        assert stored.status == Status.DEAD
        assert stored.completed_at is not None
        assert deaths == [(job.id, Status.DEAD, stored.last_error)]

    @pytest.mark.parametrize("max_attempts", [1, 5])
    def test_a_job_that_was_asked_to_stop_is_cancelled(
        self,
        queue_connection: QueueConnection,
        noop: str,
        stop: threading.Event,
        deaths: list[Any],
        caplog: pytest.LogCaptureFixture,
        max_attempts: int,
    ) -> None:
        leased(queue_connection)
        Job.objects.update(
            lease_until=Now() - HOUR,
            cancel_requested_at=Now(),
            max_attempts=max_attempts,
        )
        with caplog.at_level(logging.INFO, logger="jobs"):
            summary = job_reaper(stop)
        counts = (summary["returned"], summary["dead"], summary["cancelled"])
        assert counts == (0, 0, 1)
        stored = Job.objects.get()
        assert stored.status == Status.CANCELLED
        assert stored.last_error.startswith(
            "cancelled by an operator while it ran: worker lost: w1"
        )
        assert deaths == []
        assert [record.msg for record in caplog.records] == [
            LogEvent.LEASE_EXPIRED,
            LogEvent.CANCELLED,
        ]

    def test_a_job_that_is_just_being_finished_is_not_taken_back(
        self,
        queue_connection: QueueConnection,
        second_connection: QueueConnection,
        noop: str,
        stop: threading.Event,
    ) -> None:
        (job,) = leased(queue_connection)
        Job.objects.update(lease_until=Now() - HOUR)
        second_connection.execute("BEGIN", [])
        complete(second_connection, job)
        assert job_reaper(stop)["returned"] == 0
        second_connection.execute("COMMIT", [])
        assert job_reaper(stop)["returned"] == 0
        assert Job.objects.get().status == Status.COMPLETED

    def test_a_row_that_cannot_be_written_does_not_hold_up_the_others(
        self, queue_connection: QueueConnection, noop: str, stop: threading.Event
    ) -> None:
        jobs = leased(queue_connection, 3)
        Job.objects.update(lease_until=Now() - HOUR)
        with connection.cursor() as cursor:
            cursor.execute(
                f"""
                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    IF new.id = '{jobs[1].id}' THEN RAISE EXCEPTION 'refused'; END IF;
                    RETURN new;
                END $$;
                CREATE TRIGGER refuse BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION refuse();
                """
            )
        try:
            summary = job_reaper(stop)
        finally:
            with connection.cursor() as cursor:
                cursor.execute("DROP TRIGGER refuse ON jobs; DROP FUNCTION refuse")
        assert (summary["returned"], summary["failed"]) == (2, 1)

    def test_more_than_one_batch_is_returned(
        self,
        queue_connection: QueueConnection,
        noop: str,
        stop: threading.Event,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(runners, "REAP_BATCH", 2)
        leased(queue_connection, 5)
        Job.objects.update(lease_until=Now() - HOUR)
        assert job_reaper(stop)["returned"] == 5

    def test_processes_lost_long_ago_are_forgotten(self, stop: threading.Event) -> None:
        for name, age in [("old", 2 * DAY), ("lost", HOUR), ("alive", dt.timedelta(0))]:
            WorkerProcess.objects.create(name=name, host="h", pid=1, threads=1)
            WorkerProcess.objects.filter(name=name).update(beat_at=Now() - age)
        assert job_reaper(stop)["workers_forgotten"] == 1
        assert set(WorkerProcess.objects.values_list("name", flat=True)) == {
            "lost",
            "alive",
        }


class TestPurge:
    @pytest.fixture(autouse=True)
    def retention(self, settings: Settings) -> None:
        settings.JOBS_JOB_PURGE_COMPLETED_RETENTION = 7 * DAY
        settings.JOBS_JOB_PURGE_DEAD_RETENTION = 30 * DAY

    def finished(self, status: Status, age: dt.timedelta) -> Any:
        (job_id,) = enqueue_many([NewJob(type="test.noop")])
        Job.objects.filter(pk=job_id).update(status=status, completed_at=Now() - age)
        return job_id

    def test_each_status_goes_after_its_own_retention(
        self, noop: str, stop: threading.Event
    ) -> None:
        kept = {
            self.finished(Status.COMPLETED, 6 * DAY),
            self.finished(Status.CANCELLED, 6 * DAY),
            self.finished(Status.DEAD, 29 * DAY),
            enqueue_many([NewJob(type="test.noop")])[0],
        }
        for status, age in [
            (Status.COMPLETED, 8 * DAY),
            (Status.CANCELLED, 8 * DAY),
            (Status.DEAD, 31 * DAY),
        ]:
            self.finished(status, age)
        assert job_purge(stop) == {
            "completed": 1,
            "cancelled": 1,
            "dead": 1,
            "failed": 0,
        }
        assert set(Job.objects.values_list("id", flat=True)) == kept

    def test_attempts_go_with_their_job(self, noop: str, stop: threading.Event) -> None:
        job_id = self.finished(Status.DEAD, 31 * DAY)
        Job.objects.filter(pk=job_id).update(last_error="x")
        Attempt.objects.create(job_id=job_id, number=1, error="x")
        job_purge(stop)
        assert Attempt.objects.count() == 0

    def test_it_goes_on_batch_by_batch(
        self, noop: str, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runners, "PURGE_BATCH", 2)
        for _ in range(5):
            self.finished(Status.COMPLETED, 8 * DAY)
        assert job_purge(stop)["completed"] == 5

    def test_it_stops_when_the_worker_does(
        self, noop: str, stop: threading.Event
    ) -> None:
        self.finished(Status.COMPLETED, 8 * DAY)
        stop.set()
        assert sum(job_purge(stop).values()) == 0
        assert Job.objects.count() == 1
