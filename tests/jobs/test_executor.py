from __future__ import annotations

import asyncio
import datetime as dt
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from pytest_django import Settings

from jobs import registry
from jobs.context import JobContext
from jobs.exceptions import Cancelled, LeaseLost, Permanent, Snooze
from jobs.execution import Execution
from jobs.handler_connections import HandlerConnections
from jobs.models import Status
from jobs.outcomes import COMPLETED, LONGEST_DELAY, Outcome
from tests.jobs.support import leased_job

# An execution tidies this thread's connections, whoever has opened them.
pytestmark = pytest.mark.django_db

Register = Callable[..., None]
SECOND = dt.timedelta(seconds=1)


def run(
    handler: Any,
    *,
    attempts: int = 1,
    max_attempts: int = 5,
    payload: str = "{}",
    **options: Any,
) -> Outcome | None:
    registry.job_handler("test.run", **options)(handler)
    job = leased_job(
        type="test.run", attempts=attempts, max_attempts=max_attempts, payload=payload
    )
    return Execution(job).run(HandlerConnections())


def raising(error: BaseException) -> Any:
    def handler(context: JobContext, payload: Any) -> None:
        raise error

    return handler


def test_a_handler_that_returns_completes_its_job() -> None:
    seen: list[tuple[JobContext, Any]] = []
    outcome = run(
        lambda context, payload: seen.append((context, payload)), payload='{"a": 1}'
    )
    assert outcome is COMPLETED
    ((context, payload),) = seen
    assert payload == {"a": 1}
    assert (context.type, context.attempt, context.max_attempts) == ("test.run", 1, 5)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("boom"),
        SystemExit(1),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        GeneratorExit(),
        RecursionError(),
        MemoryError(),
    ],
)
def test_whatever_else_is_raised_is_tried_again(
    error: BaseException, settings: Settings
) -> None:
    settings.JOBS_BACKOFF_BASE = SECOND
    outcome = run(raising(error))
    assert outcome is not None
    assert outcome.status == Status.PENDING
    assert not outcome.refund
    assert SECOND <= outcome.delay <= SECOND * 1.25
    assert outcome.error is not None
    assert outcome.error.startswith(type(error).__name__)
    assert "raise error" in (outcome.traceback or "")


def test_the_delay_doubles_with_each_attempt(settings: Settings) -> None:
    settings.JOBS_BACKOFF_BASE = SECOND
    outcome = run(raising(ValueError()), attempts=4)
    assert outcome is not None
    assert 8 * SECOND <= outcome.delay <= 10 * SECOND


def test_the_last_attempt_ends_dead() -> None:
    outcome = run(raising(ValueError("boom")), attempts=5)
    assert outcome is not None
    assert (outcome.status, outcome.error) == (Status.DEAD, "ValueError: boom")


def test_permanent_ends_dead_at_once() -> None:
    outcome = run(raising(Permanent("never")))
    assert outcome is not None
    assert (outcome.status, outcome.error) == (Status.DEAD, "Permanent: never")


def test_snooze_is_later_and_gives_the_attempt_back() -> None:
    outcome = run(raising(Snooze(7 * SECOND)), attempts=5)
    assert outcome == Outcome(status=Status.PENDING, delay=7 * SECOND, refund=True)


@pytest.mark.parametrize("delay", [5, 5.0, None])
def test_a_snooze_of_no_duration_is_a_failure_that_says_so(delay: Any) -> None:
    def handler(context: JobContext, payload: Any) -> None:
        raise Snooze(delay)

    outcome = run(handler)
    assert outcome is not None
    assert (
        outcome.error == f"TypeError: Snooze: delay must be a timedelta, got {delay!r}"
    )


def test_a_lost_lease_leaves_nothing_to_write() -> None:
    assert run(raising(LeaseLost("gone"))) is None


def test_a_handlers_own_backoff_is_used() -> None:
    outcome = run(
        raising(ValueError()), attempts=3, backoff=lambda attempt: attempt * SECOND
    )
    assert outcome is not None
    assert outcome.delay == 3 * SECOND


def test_a_broken_backoff_falls_back_on_the_queues(settings: Settings) -> None:
    settings.JOBS_BACKOFF_BASE = SECOND
    outcome = run(raising(ValueError()), backoff=lambda attempt: 1 / 0)
    assert outcome is not None
    assert outcome.delay >= SECOND


class Busy(Exception):
    retry_after = dt.timedelta(minutes=10)


def test_a_retry_comes_no_earlier_than_the_error_asks_for(settings: Settings) -> None:
    settings.JOBS_BACKOFF_BASE = SECOND
    outcome = run(raising(Busy()))
    assert outcome is not None
    assert outcome.delay >= dt.timedelta(minutes=10)


def test_an_unknown_type_fails_saying_so_and_is_tried_again() -> None:
    job = leased_job(type="test.newer", attempts=1)
    outcome = Execution(job).run(HandlerConnections())
    assert outcome is not None
    assert outcome.status == Status.PENDING
    assert outcome.error == f"Unhandled job kind: test.newer, id: {job.id}"


def test_an_unknown_type_ends_dead_with_its_last_attempt() -> None:
    job = leased_job(type="test.newer", attempts=5)
    outcome = Execution(job).run(HandlerConnections())
    assert outcome is not None
    assert outcome.status == Status.DEAD


@pytest.mark.parametrize("payload", ["[1]", '{"a": ' + "9" * 5_000 + "}"])
def test_a_payload_that_cannot_be_read_is_dead_and_the_handler_not_called(
    payload: str,
) -> None:
    called: list[Any] = []
    outcome = run(lambda context, payload: called.append(payload), payload=payload)
    assert outcome is not None
    assert outcome.status == Status.DEAD
    assert "InvalidPayload" in (outcome.error or "")
    assert called == []


def test_a_row_whose_attempts_were_used_up_before_is_dead_without_a_call() -> None:
    called: list[Any] = []
    outcome = run(lambda context, payload: called.append(payload), attempts=6)
    assert outcome is not None
    assert outcome.status == Status.DEAD
    assert called == []


@pytest.mark.django_db(transaction=True)
def test_a_transaction_left_open_is_rolled_back_and_the_next_handler_works() -> None:
    def leave_open(context: JobContext, payload: Any) -> None:
        transaction.atomic().__enter__()
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE left_open ()")

    outcome = run(leave_open)
    assert outcome is not None
    assert outcome.status == Status.PENDING
    assert "TransactionMisused: a transaction was left open" in (outcome.error or "")
    assert not connection.in_atomic_block
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('left_open')")
        assert cursor.fetchone() == (None,)


@pytest.mark.django_db(transaction=True)
def test_autocommit_left_off_is_rolled_back() -> None:
    def leave_off(context: JobContext, payload: Any) -> None:
        transaction.set_autocommit(False)
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE left_off ()")

    outcome = run(leave_off, attempts=5)
    assert outcome is not None
    assert outcome.status == Status.DEAD
    assert "TransactionMisused" in (outcome.error or "")
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('left_off')")
        assert cursor.fetchone() == (None,)
    assert transaction.get_autocommit()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("boom"), (Status.PENDING, "ValueError: boom")),
        (Permanent("never"), (Status.DEAD, "Permanent: never")),
        (Snooze(SECOND), (Status.PENDING, None)),
    ],
    ids=["error", "permanent", "snooze"],
)
def test_what_a_handler_raises_is_told_and_not_the_transaction_that_it_left(
    error: Exception, expected: tuple[str, str | None]
) -> None:
    def leave_open(context: JobContext, payload: Any) -> None:
        transaction.atomic().__enter__()
        raise error

    outcome = run(leave_open)
    assert outcome is not None
    assert (outcome.status, outcome.error) == expected
    assert not connection.in_atomic_block


@pytest.mark.django_db(transaction=True)
def test_after_a_failover_the_next_handler_has_a_new_connection(
    settings: Settings,
) -> None:
    """Whatever the handler made of the error that told of it."""
    before = []

    def meet_it(context: JobContext, payload: Any) -> None:
        with connection.cursor() as cursor:
            before.append(connection.connection)
            cursor.execute("SET default_transaction_read_only = on")
        try:
            connection.connection.execute("CREATE TABLE refused ()")
        except psycopg.Error as error:
            raise RuntimeError("no luck") from error

    outcome = run(meet_it)
    assert outcome is not None
    assert outcome.error == "RuntimeError: no luck"
    assert connection.connection is None
    assert before[0].closed


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_was_cut_does_not_reach_the_next_handler() -> None:
    def cut(context: JobContext, payload: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    def use(context: JobContext, payload: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    first = run(cut)
    assert first is not None
    assert first.error is not None
    registry._job_types.clear()
    assert run(use) is COMPLETED


def test_queries_of_debug_mode_do_not_pile_up(settings: Settings, db: None) -> None:
    settings.DEBUG = True

    def query(context: JobContext, payload: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")

    run(query)
    assert len(connection.queries) == 0
    assert sys.getsizeof(connection.queries_log) < 100_000


@dataclass
class Picky:
    a: int

    def __post_init__(self) -> None:
        raise KeyError(self.a)


def test_a_payload_that_refuses_itself_is_dead() -> None:
    def handler(context: JobContext, payload: Picky) -> None: ...

    outcome = run(handler, payload='{"a": 1}')
    assert outcome is not None
    assert outcome.status == Status.DEAD


class Endless(Exception):
    retry_after = dt.timedelta.max


class Broken(Exception):
    @property
    def retry_after(self) -> dt.timedelta:
        raise ValueError("broken")


@pytest.mark.parametrize("error", [Endless(), Broken(), Snooze(dt.timedelta.max)])
def test_no_delay_that_is_asked_for_can_break_the_worker(error: Exception) -> None:
    outcome = run(raising(error))
    assert outcome is not None
    assert outcome.status == Status.PENDING
    assert outcome.delay <= LONGEST_DELAY


def test_a_handler_that_finds_its_job_unwanted_cancels_it() -> None:
    outcome = run(raising(Cancelled("the order is withdrawn")), attempts=5)
    assert outcome is not None
    assert (outcome.status, outcome.error, outcome.refund) == (
        Status.CANCELLED,
        "Cancelled: the order is withdrawn",
        False,
    )
    assert "raise error" in (outcome.traceback or "")
