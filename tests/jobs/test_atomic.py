from __future__ import annotations

import datetime as dt
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection, connections, transaction

from jobs import atomic, claims, leases, registry
from jobs.connection import QueueConnection
from jobs.context import JobContext
from jobs.enqueue import enqueue
from jobs.events import LogEvent
from jobs.exceptions import Permanent, Snooze
from jobs.execution import Execution
from jobs.handler_connections import HandlerConnections
from jobs.lease_lengths import LeaseLengths
from jobs.leases import LeasedJob
from jobs.models import Job, RunnerState, Status
from jobs.outcomes import Outcome
from jobs.pool import Pool
from jobs.selection import Queues
from jobs.testing import run_due_jobs
from tests.jobs.support import claim_for, leased_job

Handler = Callable[[JobContext, Any], None]
HOUR = dt.timedelta(hours=1)


def book() -> None:
    """What the handlers write: one row, which can only be written once."""
    RunnerState.objects.create(name="booked", interval=HOUR)


def booked() -> int:
    return RunnerState.objects.filter(name="booked").count()


def add(handler: Handler, **options: Any) -> Job:
    registry.job_handler("test.atomic", atomic=True, **options)(handler)
    return enqueue("test.atomic")


def lease(queue: QueueConnection) -> LeasedJob:
    (job,) = claims.claim(queue, claim_for(types=("test.atomic",)))
    return job


def execute(queue: QueueConnection, handler: Handler, **options: Any) -> Outcome | None:
    add(handler, **options)
    return Execution(lease(queue)).run(HandlerConnections())


def books(context: JobContext, payload: Any) -> None:
    book()


@pytest.mark.django_db(transaction=True)
def test_the_writes_and_the_completion_commit_together(
    queue_connection: QueueConnection,
) -> None:
    seen: list[tuple[Any, ...]] = []

    def look(context: JobContext, payload: Any) -> None:
        book()
        seen.extend(queue_connection.execute("SELECT name FROM job_runners", []))
        transaction.on_commit(
            lambda: seen.extend(
                queue_connection.execute(
                    "SELECT name, status FROM job_runners, jobs", []
                )
            )
        )

    assert execute(queue_connection, look) is None
    assert seen == [("booked", Status.COMPLETED)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kept", [True, False])
def test_run_due_jobs_runs_it_as_a_worker_does(kept: bool) -> None:
    add(books, keep_completed=kept)
    run_due_jobs()
    assert booked() == 1
    assert list(Job.objects.values_list("status", flat=True)) == ["completed"] * kept


@pytest.mark.django_db
@pytest.mark.parametrize("works", [True, False])
def test_it_works_within_a_tests_own_transaction(works: bool) -> None:
    def may_fail(context: JobContext, payload: Any) -> None:
        book()
        if not works:
            raise ValueError("boom")

    add(may_fail)
    (job,) = run_due_jobs()
    assert job.status == (Status.COMPLETED if works else Status.PENDING)
    assert booked() == works


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("error", "status", "attempts"),
    [
        (ValueError("boom"), Status.PENDING, 1),
        (Snooze(HOUR), Status.PENDING, 0),
        (Permanent("never"), Status.DEAD, 1),
    ],
    ids=["error", "snooze", "permanent"],
)
def test_what_it_raises_rolls_back_and_ends_as_usual(
    error: Exception, status: str, attempts: int
) -> None:
    def fail(context: JobContext, payload: Any) -> None:
        book()
        raise error

    add(fail)
    (job,) = run_due_jobs()
    assert (job.status, job.attempts, booked()) == (status, attempts, 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "change",
    [
        "lease_seq = lease_seq + 1, leased_by = 'another'",
        "status = 'pending', lease_until = NULL, leased_by = NULL",
        "status = 'cancelled', lease_until = NULL, completed_at = now()",
    ],
    ids=["held by another", "taken back", "cancelled"],
)
@pytest.mark.parametrize("kept", [True, False])
def test_a_lost_lease_rolls_the_writes_back(
    queue_connection: QueueConnection,
    caplog: pytest.LogCaptureFixture,
    change: str,
    kept: bool,
) -> None:
    def lose_it(context: JobContext, payload: Any) -> None:
        book()
        queue_connection.execute(f"UPDATE jobs SET {change}", [])

    assert execute(queue_connection, lose_it, keep_completed=kept) is None
    assert booked() == 0
    assert Job.objects.get().status != Status.COMPLETED
    assert [record.msg for record in caplog.records] == [LogEvent.LEASE_LOST]


@pytest.fixture
def deferred() -> Iterator[None]:
    """A constraint that is looked at when the transaction commits."""
    statement = (
        "ALTER TABLE job_runners ADD CONSTRAINT late UNIQUE (interval) "
        "DEFERRABLE INITIALLY DEFERRED"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)
    yield
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE job_runners DROP CONSTRAINT late")


@pytest.mark.django_db(transaction=True)
def test_a_commit_that_is_refused_is_a_failure(deferred: None) -> None:
    RunnerState.objects.create(name="first", interval=HOUR)
    add(books)
    (job,) = run_due_jobs()
    assert (job.status, booked()) == (Status.PENDING, 0)
    assert "IntegrityError" in job.last_error


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("max_attempts", [1, 2])
def test_a_commit_whose_answer_was_lost_is_settled_by_the_fence(
    caplog: pytest.LogCaptureFixture, kept: bool, max_attempts: int
) -> None:
    def cut(context: JobContext, payload: Any) -> None:
        book()
        raw = connection.connection
        really_commit = raw.commit

        def commit() -> None:
            really_commit()
            raw.close()
            raise psycopg.OperationalError("the connection was cut")

        raw.commit = commit

    add(cut, keep_completed=kept, max_attempts=max_attempts)
    run_due_jobs()
    assert booked() == 1
    assert list(Job.objects.values_list("status", flat=True)) == ["completed"] * kept
    assert LogEvent.LEASE_LOST not in [record.msg for record in caplog.records]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_is_cut_before_the_commit_is_a_failure(
    queue_connection: QueueConnection,
) -> None:
    def cut(context: JobContext, payload: Any) -> None:
        book()
        raw = connection.connection
        queue_connection.execute(
            "SELECT pg_terminate_backend(%s, 10000)", [raw.info.backend_pid]
        )

    outcome = execute(queue_connection, cut)
    assert outcome is not None
    assert (outcome.status, booked()) == (Status.PENDING, 0)


@pytest.mark.django_db(transaction=True)
def test_a_hook_that_fails_after_the_commit_undoes_nothing_and_stops_no_other(
    queue_connection: QueueConnection, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[int] = []

    def broken() -> None:
        raise SystemExit("broken")

    def leaves_open() -> None:
        transaction.atomic().__enter__()

    def with_hooks(context: JobContext, payload: Any) -> None:
        book()
        transaction.on_commit(broken)
        transaction.on_commit(broken, robust=True)
        transaction.on_commit(lambda: told.append(1))
        transaction.on_commit(leaves_open)

    outcome = execute(queue_connection, with_hooks)
    assert outcome is None
    assert (Job.objects.get().status, booked(), told) == (Status.COMPLETED, 1, [1])
    failed = [r for r in caplog.records if r.msg == LogEvent.AFTER_COMMIT_FAILED]
    assert len(failed) == 3
    assert failed[0].exc_info


@pytest.mark.django_db
def test_hooks_in_a_callers_transaction_run_with_its_commit(
    django_capture_on_commit_callbacks: Any,
) -> None:
    told: list[str] = []

    def with_hook(context: JobContext, payload: Any) -> None:
        transaction.on_commit(lambda: told.append("inner"))

    with django_capture_on_commit_callbacks(execute=True):
        transaction.on_commit(lambda: told.append("outer"))
        add(with_hook)
        run_due_jobs()
        assert told == []
    assert told == ["outer", "inner"]


def leave_a_block_open() -> None:
    transaction.atomic().__enter__()


def commit_by_hand() -> None:
    with connection.cursor() as cursor:
        cursor.execute("COMMIT")


def roll_back_by_the_driver() -> None:
    connection.connection.rollback()


def leave_the_block() -> None:
    connections["default"].atomic_blocks[-1].__exit__(None, None, None)


def close_the_connection() -> None:
    connection.close()


def delete_the_connection() -> None:
    del connections["default"]


def replace_the_connection() -> None:
    connections["default"] = connections.create_connection("default")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("misuse", "told"),
    [
        (leave_a_block_open, "left a transaction.atomic() of its own open"),
        (commit_by_hand, "committed or rolled back by hand"),
        (roll_back_by_the_driver, "committed or rolled back by hand"),
        (leave_the_block, "left its transaction"),
        (close_the_connection, "closed its connection"),
        (delete_the_connection, "replaced its connection"),
        (replace_the_connection, "replaced its connection"),
    ],
)
def test_a_handler_that_takes_the_transaction_over_fails(
    queue_connection: QueueConnection, misuse: Callable[[], None], told: str
) -> None:
    def take_over(context: JobContext, payload: Any) -> None:
        book()
        misuse()

    outcome = execute(queue_connection, take_over)
    assert outcome is not None
    assert (outcome.status, Job.objects.get().status) == ("pending", "running")
    assert f"TransactionMisused: the handler {told}" in (outcome.error or "")
    assert transaction.get_autocommit()


@pytest.mark.django_db(transaction=True)
def test_one_that_wants_its_transaction_rolled_back_cannot_complete(
    queue_connection: QueueConnection,
) -> None:
    def roll_back(context: JobContext, payload: Any) -> None:
        book()
        transaction.set_rollback(True)

    outcome = execute(queue_connection, roll_back)
    assert outcome is not None
    assert (outcome.status, booked()) == (Status.PENDING, 0)


@pytest.mark.django_db(transaction=True)
def test_the_heartbeat_extends_its_lease_until_the_completion_holds_the_row(
    queue_connection: QueueConnection,
    second_connection: QueueConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And neither waits for it then nor takes the lease for lost."""
    held: list[LeasedJob] = []
    untils = []

    def beat() -> None:
        assert not leases.extend(second_connection, held, LeaseLengths(HOUR)).lost
        until = "SELECT lease_until > now() + interval '50 min' FROM jobs"
        untils.extend(second_connection.execute(until, []))

    def wait(context: JobContext, payload: Any) -> None:
        book()
        beat()

    really_complete = leases.complete

    def complete(*arguments: Any) -> Any:
        lost = really_complete(*arguments)
        beat()
        return lost

    monkeypatch.setattr(leases, "complete", complete)
    add(wait)
    held.append(lease(queue_connection))
    assert Execution(held[0]).run(HandlerConnections()) is None
    assert untils == [(True,), (True,)]
    assert Job.objects.get().status == Status.COMPLETED


@pytest.mark.django_db(transaction=True)
def test_news_of_its_lease_are_none_once_it_is_completed(
    queue_connection: QueueConnection, caplog: pytest.LogCaptureFixture
) -> None:
    """A hook may take its time, and the heartbeat asks after a lease that the commit has ended."""
    pool = Pool(worker="w1", threads=1, queues=Queues(["default"]), lease=HOUR)
    thread = pool.threads[0]

    def hooked(context: JobContext, payload: Any) -> None:
        (job,) = pool.held()
        transaction.on_commit(
            lambda: pool.extended(
                time.monotonic(),
                leases.extend(queue_connection, [job], pool.leases).lost,
            )
        )

    add(hooked)
    with caplog.at_level(logging.WARNING, logger="jobs"):
        thread._execute(lease(queue_connection), HandlerConnections())
    assert Job.objects.get().status == Status.COMPLETED
    assert [record.msg for record in caplog.records] == []
    pool.close()


def test_what_went_wrong_after_the_commit_is_told_with_its_job(
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = leased_job()
    atomic.report_after_commit(job, ValueError("boom"))
    (record,) = caplog.records
    assert (record.msg, record.job_id) == (LogEvent.AFTER_COMMIT_FAILED, job.id)  # type: ignore[attr-defined]
