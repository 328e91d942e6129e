from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from jobs import claims, outcomes
from jobs.connection import QueueConnection, TransactionConnection
from jobs.enqueue import NewJob, enqueue_many
from jobs.events import LogEvent
from jobs.finisher import write
from jobs.leases import LeasedJob
from jobs.models import Job, Status
from jobs.signals import job_dead
from tests.jobs.support import claim_for, leased_job

SECOND = dt.timedelta(seconds=1)
Connect = Callable[[Callable[..., None]], None]


@pytest.fixture
def connected() -> Iterator[Connect]:
    """Connects receivers of ``job_dead`` for one test."""
    receivers = []

    def connect(receiver: Callable[..., None]) -> None:
        receivers.append(receiver)
        job_dead.connect(receiver)

    before = job_dead.receivers
    job_dead.receivers = []
    job_dead.sender_receivers_cache.clear()
    yield connect
    job_dead.receivers = before
    job_dead.sender_receivers_cache.clear()


@pytest.fixture
def batch(transaction_connection: TransactionConnection, noop: str) -> list[LeasedJob]:
    enqueue_many([NewJob(type=noop) for _ in range(3)])
    return claims.claim(transaction_connection, claim_for())


def statuses() -> list[str]:
    return list(Job.objects.order_by("id").values_list("status", flat=True))


def test_a_mixed_batch_is_written_and_each_end_is_an_event(
    transaction_connection: TransactionConnection,
    batch: list[LeasedJob],
    caplog: pytest.LogCaptureFixture,
) -> None:
    wanted = [
        outcomes.COMPLETED,
        outcomes.retry(SECOND, error="again"),
        outcomes.dead("gone"),
    ]
    finished = list(zip(batch, wanted, strict=True))
    with caplog.at_level(logging.DEBUG, logger="jobs"):
        write(transaction_connection, finished, worker="w1")
    assert finished == []
    assert statuses() == [Status.COMPLETED, Status.PENDING, Status.DEAD]
    assert [record.msg for record in caplog.records] == [
        LogEvent.FAIL_RETRY,
        LogEvent.DEAD,
        LogEvent.COMPLETED,
    ]
    retried: Any = caplog.records[0]
    assert (retried.job_id, retried.attempt, retried.error) == (batch[1].id, 1, "again")


@pytest.mark.parametrize(
    ("outcome", "event"),
    [
        (outcomes.NOT_BEGUN, LogEvent.RELEASED),
        (outcomes.snooze(SECOND), LogEvent.SNOOZED),
    ],
)
def test_what_goes_back_without_a_failure_has_its_own_event(
    transaction_connection: TransactionConnection,
    batch: list[LeasedJob],
    caplog: pytest.LogCaptureFixture,
    outcome: outcomes.Outcome,
    event: LogEvent,
) -> None:
    with caplog.at_level(logging.INFO, logger="jobs"):
        write(transaction_connection, [(batch[0], outcome)], worker="w1")
    assert [record.msg for record in caplog.records] == [event]


@pytest.mark.parametrize(
    "outcome",
    [outcomes.COMPLETED, outcomes.retry(SECOND, error="x"), outcomes.dead("x")],
)
def test_a_lost_lease_is_logged_and_nothing_written(
    transaction_connection: TransactionConnection,
    caplog: pytest.LogCaptureFixture,
    outcome: outcomes.Outcome,
    connected: Connect,
) -> None:
    told: list[Any] = []
    connected(lambda **kwargs: told.append(kwargs))
    write(transaction_connection, [(leased_job(), outcome)], worker="w1")
    assert [record.msg for record in caplog.records] == [LogEvent.LEASE_LOST]
    assert told == []


def test_a_death_is_announced_with_the_row_as_it_was_written(
    transaction_connection: TransactionConnection,
    batch: list[LeasedJob],
    connected: Connect,
) -> None:
    told: list[tuple[Any, str, str]] = []
    receiver = lambda **kwargs: told.append(  # noqa: E731
        (kwargs["job"].pk, kwargs["job"].status, kwargs["error"])
    )
    connected(receiver)
    write(transaction_connection, [(batch[0], outcomes.dead("gone"))], worker="w1")
    assert told == [(batch[0].id, Status.DEAD, "gone")]


def test_a_broken_receiver_neither_keeps_the_job_alive_nor_undoes_another(
    transaction_connection: TransactionConnection,
    batch: list[LeasedJob],
    caplog: pytest.LogCaptureFixture,
    connected: Connect,
) -> None:
    told: list[Any] = []

    @transaction.atomic
    def broken(**kwargs: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT no_such_column")

    def works(**kwargs: Any) -> None:
        told.append(kwargs["job"].pk)
        Job.objects.filter(pk=kwargs["job"].pk).update(ref_id="told")

    connected(broken)
    connected(works)
    write(transaction_connection, [(batch[0], outcomes.dead("gone"))], worker="w1")
    job = Job.objects.get(pk=batch[0].id)
    assert (job.status, job.ref_id) == (Status.DEAD, "told")
    assert LogEvent.DEAD_RECEIVER_FAILED in [record.msg for record in caplog.records]


def test_even_a_receiver_that_leaves_the_transaction_aborted_does_not(
    transaction_connection: TransactionConnection,
    batch: list[LeasedJob],
    caplog: pytest.LogCaptureFixture,
    connected: Connect,
) -> None:
    def broken(**kwargs: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT no_such_column")

    connected(broken)
    write(transaction_connection, [(batch[0], outcomes.dead("gone"))], worker="w1")
    assert Job.objects.get(pk=batch[0].id).status == Status.DEAD
    assert LogEvent.DEAD_RECEIVER_FAILED in [record.msg for record in caplog.records]


def test_one_outcome_that_cannot_be_stored_does_not_hold_up_the_others(
    transaction_connection: TransactionConnection,
    batch: list[LeasedJob],
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Savepoints(TransactionConnection):
        """In autocommit a failed statement undoes itself only; here a savepoint stands in for that."""

        def execute(self, query: str, parameters: Any) -> list[Any]:
            with transaction.atomic():
                return super().execute(query, parameters)

    bad = outcomes.retry(SECOND, error="not cleaned: \x00")
    good = outcomes.retry(SECOND, error="x")
    write(
        Savepoints(), [(batch[0], good), (batch[1], bad), (batch[2], good)], worker="w1"
    )
    assert statuses() == [Status.PENDING, Status.RUNNING, Status.PENDING]
    assert LogEvent.FINISH_FAILED in [record.msg for record in caplog.records]


def test_what_was_written_before_the_database_went_is_not_written_again(
    transaction_connection: TransactionConnection,
    batch: list[LeasedJob],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*args: object, **kwargs: object) -> object:
        raise psycopg.OperationalError("gone")

    retry = outcomes.retry(SECOND, error="again")
    completed = (batch[0], outcomes.COMPLETED)
    finished = [completed, (batch[1], retry)]
    with monkeypatch.context() as patched:
        patched.setattr("jobs.leases.complete", away)
        with pytest.raises(psycopg.OperationalError):
            write(transaction_connection, finished, worker="w1")
    assert finished == [completed]
    write(transaction_connection, finished, worker="w1")
    assert statuses() == [Status.COMPLETED, Status.PENDING, Status.RUNNING]
    assert LogEvent.LEASE_LOST not in [record.msg for record in caplog.records]


def test_a_job_whose_payload_cannot_be_read_dies_like_any_other(
    transaction_connection: TransactionConnection,
    batch: list[LeasedJob],
    connected: Connect,
) -> None:
    told: list[object] = []

    def receiver(**kwargs: Any) -> None:
        told.append(kwargs["job"].type)

    connected(receiver)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs SET payload = %s WHERE id = %s",
            ['{"a": ' + "9" * 5_000 + "}", batch[0].id],
        )
    write(transaction_connection, [(batch[0], outcomes.dead("gone"))], worker="w1")
    dead = Job.objects.defer("payload").get(pk=batch[0].id)
    assert dead.status == Status.DEAD
    assert told == ["test.noop"]


def test_the_next_batch_comes_with_the_completion_of_the_last(
    transaction_connection: TransactionConnection, batch: list[LeasedJob]
) -> None:
    finished = [
        (batch[0], outcomes.COMPLETED),
        (batch[1], outcomes.COMPLETED_AND_DELETED),
        (batch[2], outcomes.retry(-SECOND, error="again")),
    ]
    claimed = write(transaction_connection, finished, worker="w1", wanted=claim_for())
    assert finished == []
    assert [job.id for job in claimed] == [batch[2].id]
    assert dict(Job.objects.values_list("id", "status")) == {
        batch[0].id: Status.COMPLETED,
        batch[2].id: Status.RUNNING,
    }


def test_with_nothing_to_write_it_is_a_claim(
    transaction_connection: TransactionConnection, noop: str
) -> None:
    enqueue_many([NewJob(type=noop)])
    (job,) = write(transaction_connection, [], worker="w1", wanted=claim_for())
    assert job.attempts == 1


@pytest.mark.django_db(transaction=True)
def test_what_is_done_is_written_though_the_next_batch_cannot_be_claimed(
    queue_connection: QueueConnection, noop: str
) -> None:
    enqueue_many([NewJob(type=noop)])
    (job,) = claims.claim(queue_connection, claim_for())
    broken = replace(claim_for(), costs={noop: "much"})  # type: ignore[dict-item]
    finished = [(job, outcomes.COMPLETED)]
    with pytest.raises(psycopg.DataError):
        write(queue_connection, finished, worker="w1", wanted=broken)
    assert finished == []
    assert statuses() == [Status.COMPLETED]


def test_a_lost_lease_of_a_completion_is_told(
    transaction_connection: TransactionConnection,
    batch: list[LeasedJob],
    caplog: pytest.LogCaptureFixture,
) -> None:
    stale = batch[0]._replace(lease_seq=7)
    write(transaction_connection, [(stale, outcomes.COMPLETED)], worker="w1")
    (record,) = (r for r in caplog.records if r.msg == LogEvent.LEASE_LOST)
    assert record.job_id == stale.id  # type: ignore[attr-defined]
    assert statuses() == [Status.RUNNING] * 3


def test_a_completion_before_a_death_is_not_dropped_when_the_database_goes(
    transaction_connection: TransactionConnection,
    batch: list[LeasedJob],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*args: object) -> object:
        raise psycopg.OperationalError("gone")

    first, second, third = batch
    completed = [(first, outcomes.COMPLETED), (third, outcomes.COMPLETED)]
    finished = [completed[0], (second, outcomes.dead("x")), completed[1]]
    with monkeypatch.context() as patched:
        patched.setattr("jobs.leases.complete", away)
        with pytest.raises(psycopg.OperationalError):
            write(transaction_connection, finished, worker="w1")
    assert finished == completed
    write(transaction_connection, finished, worker="w1")
    assert statuses() == [Status.COMPLETED, Status.DEAD, Status.COMPLETED]


@pytest.mark.django_db(transaction=True)
def test_one_row_that_cannot_be_completed_does_not_hold_up_the_others(
    queue_connection: QueueConnection, noop: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As where another table refers to a job whose row is to be deleted."""
    ids = enqueue_many([NewJob(type=noop) for _ in range(4)])
    leased = claims.claim(queue_connection, claim_for(queues={"default": 3}))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE refers (job uuid REFERENCES jobs (id))")
        cursor.execute("INSERT INTO refers VALUES (%s)", [leased[1].id])
    try:
        finished = [(job, outcomes.COMPLETED_AND_DELETED) for job in leased]
        claimed = write(queue_connection, finished, worker="w1", wanted=claim_for())
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE refers")
    assert finished == []
    assert [job.id for job in claimed] == ids[3:]
    left = Job.objects.order_by("id").values_list("id", flat=True)
    assert list(left) == [leased[1].id, ids[3]]
    failed = [r for r in caplog.records if r.msg == LogEvent.FINISH_FAILED]
    assert [record.job_id for record in failed] == [leased[1].id]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "outcome",
    [
        outcomes.retry(SECOND, error="x"),
        outcomes.dead("x"),
        outcomes.snooze(SECOND),
        outcomes.NOT_BEGUN,
        outcomes.cancelled("x"),
    ],
    ids=["failed", "dead", "snoozed", "not begun", "cancelled"],
)
def test_a_job_that_was_asked_to_stop_ends_cancelled_and_no_death_is_announced(
    transaction_connection: TransactionConnection,
    batch: list[LeasedJob],
    caplog: pytest.LogCaptureFixture,
    connected: Connect,
    outcome: outcomes.Outcome,
) -> None:
    told: list[Any] = []
    connected(lambda **kwargs: told.append(kwargs))
    Job.objects.filter(pk=batch[0].id).update(cancel_requested_at=Now())
    with caplog.at_level(logging.INFO, logger="jobs"):
        write(transaction_connection, [(batch[0], outcome)], worker="w1")
    assert statuses() == [Status.CANCELLED, Status.RUNNING, Status.RUNNING]
    (record,) = caplog.records
    assert (record.msg, record.levelname) == (LogEvent.CANCELLED, "INFO")
    assert record.error == outcome.error  # type: ignore[attr-defined]
    assert told == []
