from __future__ import annotations

import datetime as dt
import threading
import uuid
from collections.abc import Callable, Iterator

import psycopg
import pytest
from django.db import connection

from jobs import purging
from jobs.connection import QueueConnection
from jobs.events import LogEvent
from jobs.models import Job, Status
from jobs.purging import Purge
from tests.jobs.factories import JobFactory, ago
from tests.jobs.support import explain

pytestmark = pytest.mark.django_db(transaction=True)

DAY = dt.timedelta(days=1)
Refuse = Callable[[list[uuid.UUID]], None]


@pytest.fixture
def refuse() -> Iterator[Refuse]:
    """Has the database refuse to delete these jobs: another table refers to them."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE refers (job uuid REFERENCES jobs (id))")

    def add(ids: list[uuid.UUID]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO refers VALUES (%s)", [[pk] for pk in ids])

    yield add
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE refers")


def old(count: int) -> list[uuid.UUID]:
    """Completed jobs, the oldest first."""
    jobs = [
        JobFactory(completed=True, completed_at=ago(days=2, seconds=count - n))
        for n in range(count)
    ]
    return [job.pk for job in jobs]


def left() -> set[uuid.UUID]:
    return set(Job.objects.values_list("pk", flat=True))


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_what_the_database_refuses_to_delete_holds_up_nothing(
    queue_connection: QueueConnection,
    refuse: Refuse,
    caplog: pytest.LogCaptureFixture,
    batch: int,
) -> None:
    ids = old(10)
    refused = [ids[0], ids[4], ids[5]]
    refuse(refused)
    purge = Purge(queue_connection, threading.Event(), batch=batch)
    assert purge.delete(Status.COMPLETED, retention=DAY) == 7
    assert left() == set(refused)
    assert sorted(purge.refused) == refused
    failed = [r for r in caplog.records if r.msg == LogEvent.PURGE_FAILED]
    assert sorted(record.job_id for record in failed) == refused  # type: ignore[attr-defined]


def test_a_whole_batch_of_them_does_not_stand_before_the_others(
    queue_connection: QueueConnection, refuse: Refuse
) -> None:
    ids = old(7)
    refuse(ids[:4])
    purge = Purge(queue_connection, threading.Event(), batch=2)
    assert purge.delete(Status.COMPLETED, retention=DAY) == 3
    assert left() == set(ids[:4])


def test_with_too_many_of_them_it_comes_to_an_end(
    queue_connection: QueueConnection,
    refuse: Refuse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(purging, "MOST_REFUSED", 2)
    ids = old(6)
    refuse(ids[:4])
    purge = Purge(queue_connection, threading.Event(), batch=2)
    assert purge.delete(Status.COMPLETED, retention=DAY) == 0
    assert sorted(purge.refused) == ids[:2]


def test_what_was_retried_meanwhile_is_left(
    queue_connection: QueueConnection,
    refuse: Refuse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = old(4)
    refuse(ids[:1])
    purge = Purge(queue_connection, threading.Event(), batch=100)
    really = purge._delete_these

    def meanwhile(found: list[uuid.UUID], old: dict[str, object]) -> int:
        Job.objects.filter(pk=ids[2]).update(status=Status.PENDING, completed_at=None)
        monkeypatch.undo()
        return really(found, old)

    monkeypatch.setattr(purge, "_delete_these", meanwhile)
    assert purge.delete(Status.COMPLETED, retention=DAY) == 2
    assert left() == {ids[0], ids[2]}


def test_a_database_that_is_away_is_no_row_that_is_refused(
    queue_connection: QueueConnection,
) -> None:
    old(1)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(%s)",
            [queue_connection.raw().info.backend_pid],
        )
    purge = Purge(queue_connection, threading.Event(), batch=100)
    with pytest.raises(psycopg.OperationalError):
        purge.delete(Status.COMPLETED, retention=DAY)
    assert purge.refused == []


def test_old_rows_are_found_by_the_index() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO jobs (id, type, status, completed_at, payload)
            SELECT gen_random_uuid(), 'test.noop', kind.status,
                CASE WHEN kind.status <> 'pending' THEN now() - n * interval '1 minute' END, '{}'
            FROM generate_series(1, 5000) AS n
            CROSS JOIN (VALUES ('pending'), ('completed'), ('dead')) AS kind (status)
            """
        )
        cursor.execute("ANALYZE jobs")
    values = {
        "status": "completed",
        "retention": "3 days",
        "most": 1000,
        "refused": [],
    }
    plan = explain(purging._DELETE, values)
    assert "jobs_finished" in plan
    assert "Seq Scan" not in plan
