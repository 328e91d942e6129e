from __future__ import annotations

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from jobs import claims, leases, outcomes
from jobs.connection import QueueConnection, TransactionConnection
from jobs.enqueue import NewJob, enqueue_many
from jobs.lease_lengths import LeaseLengths
from jobs.leases import LeasedJob
from jobs.models import Attempt, Job, Status
from jobs.registry import job_handler
from jobs.testing import wait_until
from tests.jobs.support import (
    add,
    claim_for,
    claim_one,
    complete,
    explain,
    rows_of_every_kind,
    somebody_waits_for_a_lock,
)

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture(autouse=True)
def types(noop: str) -> None: ...


class TestFencing:
    def test_the_holder_completes(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add()
        leased = claim_one(transaction_connection)
        assert complete(transaction_connection, leased) == {leased.id}
        job = Job.objects.get()
        assert job.status == Status.COMPLETED
        assert job.completed_at is not None
        assert (job.leased_by, job.lease_until) == (None, None)

    def test_a_stale_worker_changes_nothing_in_any_way(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add()
        stale = claim_one(transaction_connection, "w1")
        leases.finish(
            transaction_connection, [(stale, outcomes.snooze(-MINUTE))], worker="w1"
        )
        current = claim_one(transaction_connection, "w2")
        # The attempt is the same again; only the lease's number tells the two apart.
        assert (stale.attempts, current.attempts) == (1, 1)
        before = Job.objects.values().get()
        assert complete(transaction_connection, stale) == set()
        for outcome in (
            outcomes.dead("x"),
            outcomes.retry(MINUTE, error="x"),
            outcomes.snooze(MINUTE),
            outcomes.NOT_BEGUN,
        ):
            assert (
                leases.finish(transaction_connection, [(stale, outcome)], worker="w1")
                == {}
            )
        news = leases.extend(transaction_connection, [stale], LeaseLengths(60 * MINUTE))
        assert news == ({stale.key}, set())
        assert Job.objects.values().get() == before
        assert Attempt.objects.count() == 0
        assert complete(transaction_connection, current) == {current.id}

    @pytest.mark.parametrize(
        "status", [Status.COMPLETED, Status.DEAD, Status.CANCELLED]
    )
    def test_a_terminal_row_never_changes(
        self, transaction_connection: TransactionConnection, status: Status
    ) -> None:
        add()
        leased = claim_one(transaction_connection)
        Job.objects.update(status=status, completed_at=Now(), lease_until=None)
        assert complete(transaction_connection, leased) == set()
        assert (
            leases.finish(
                transaction_connection, [(leased, outcomes.dead("x"))], worker="w"
            )
            == {}
        )
        assert Job.objects.get().status == status


class TestFinish:
    def test_every_outcome_in_one_statement(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add(4)
        batch = claims.claim(transaction_connection, claim_for())
        wanted = [
            outcomes.dead("gone", "trace"),
            outcomes.retry(MINUTE, error="again", traceback="trace"),
            outcomes.snooze(2 * MINUTE),
            outcomes.NOT_BEGUN,
        ]
        leases.finish(
            transaction_connection, list(zip(batch, wanted, strict=True)), worker="w1"
        )
        dead, again, snoozed, returned = (Job.objects.get(pk=job.id) for job in batch)
        assert (dead.status, dead.attempts, dead.last_error) == (Status.DEAD, 1, "gone")
        now = dead.completed_at
        assert now is not None
        assert (again.status, again.attempts, again.last_error) == (
            Status.PENDING,
            1,
            "again",
        )
        assert again.run_at == now + MINUTE
        assert (snoozed.status, snoozed.attempts) == (Status.PENDING, 0)
        assert snoozed.run_at == now + 2 * MINUTE
        assert (returned.status, returned.attempts, returned.run_at) == (
            Status.PENDING,
            0,
            now,
        )
        assert set(Job.objects.values_list("leased_by", "lease_until")) == {
            (None, None)
        }
        attempts = {
            (a.job_id, a.number, a.error, a.traceback, a.worker)
            for a in Attempt.objects.all()
        }
        assert attempts == {
            (dead.id, 1, "gone", "trace", "w1"),
            (again.id, 1, "again", "trace", "w1"),
        }

    def test_an_attempt_that_is_given_back_keeps_its_number_in_the_history(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add()
        leased = claim_one(transaction_connection)
        leases.finish(
            transaction_connection, [(leased, outcomes.interrupted("cut"))], worker="w"
        )
        assert Job.objects.get().attempts == 0
        assert Attempt.objects.get().number == 1


class TestCancelRequested:
    """What an operator has asked for is decided where the outcome is written: the worker need not have heard of it."""

    @pytest.fixture
    def leased(self, transaction_connection: TransactionConnection) -> LeasedJob:
        add(unique_key="k")
        leased = claim_one(transaction_connection)
        Job.objects.update(cancel_requested_at=Now())
        return leased

    @pytest.mark.parametrize(
        ("outcome", "error"),
        [
            (outcomes.retry(MINUTE, error="ValueError: x"), "it ran: ValueError: x"),
            (outcomes.dead("Permanent: x"), "it ran: Permanent: x"),
            (outcomes.cancelled("Cancelled: x"), "it ran: Cancelled: x"),
            (outcomes.interrupted("interrupted: x"), "it ran: interrupted: x"),
            (outcomes.snooze(MINUTE), "a worker held it"),
            (outcomes.NOT_BEGUN, "a worker held it"),
        ],
        ids=["failed", "permanent", "cancelled", "interrupted", "snoozed", "not begun"],
    )
    def test_whatever_is_not_completed_is_cancelled(
        self,
        transaction_connection: TransactionConnection,
        leased: LeasedJob,
        outcome: outcomes.Outcome,
        error: str,
    ) -> None:
        before = Job.objects.get()
        written = leases.finish(
            transaction_connection, [(leased, outcome)], worker="w1"
        )
        assert written == {leased.id: Status.CANCELLED}
        job = Job.objects.get()
        assert job.status == Status.CANCELLED
        assert job.last_error == f"cancelled by an operator while {error}"
        assert job.completed_at is not None
        assert (job.leased_by, job.lease_until) == (None, None)
        assert job.run_at == before.run_at
        assert job.attempts == (0 if outcome.refund else 1)
        assert job.cancel_requested_at == before.cancel_requested_at

    def test_an_attempt_that_failed_is_kept_as_it_was(
        self, transaction_connection: TransactionConnection, leased: LeasedJob
    ) -> None:
        outcome = outcomes.retry(MINUTE, error="ValueError: x", traceback="trace")
        leases.finish(transaction_connection, [(leased, outcome)], worker="w1")
        attempt = Attempt.objects.get()
        assert (attempt.number, attempt.error) == (1, "ValueError: x")
        assert attempt.traceback == "trace"

    def test_its_key_is_free(
        self, transaction_connection: TransactionConnection, leased: LeasedJob
    ) -> None:
        leases.finish(
            transaction_connection, [(leased, outcomes.snooze(MINUTE))], worker="w1"
        )
        assert add(unique_key="k") != [leased.id]

    def test_what_completes_all_the_same_is_completed(
        self, transaction_connection: TransactionConnection, leased: LeasedJob
    ) -> None:
        assert complete(transaction_connection, leased) == {leased.id}
        assert Job.objects.get().status == Status.COMPLETED

    def test_also_where_it_is_written_with_others(
        self, transaction_connection: TransactionConnection, leased: LeasedJob
    ) -> None:
        done = [(leased, outcomes.COMPLETED)]
        written = leases.finish(transaction_connection, done, worker="w1")
        assert written == {leased.id: Status.COMPLETED}

    def test_a_stale_worker_cancels_nothing(
        self, transaction_connection: TransactionConnection, leased: LeasedJob
    ) -> None:
        Job.objects.update(lease_seq=7)
        outcome = outcomes.retry(MINUTE, error="x")
        assert (
            leases.finish(transaction_connection, [(leased, outcome)], worker="w1")
            == {}
        )
        assert Job.objects.get().status == Status.RUNNING

    def test_it_is_news_with_every_beat(
        self, transaction_connection: TransactionConnection, leased: LeasedJob
    ) -> None:
        add()
        other = claim_one(transaction_connection)
        for _ in range(2):
            news = leases.extend(
                transaction_connection, [leased, other], LeaseLengths(MINUTE)
            )
            assert news == (set(), {leased.key})

    def test_a_request_that_comes_while_the_outcome_is_written_is_heeded(
        self, queue_connection: QueueConnection, second_connection: QueueConnection
    ) -> None:
        add()
        leased = claim_one(queue_connection)
        second_connection.execute("BEGIN", [])
        second_connection.execute(
            "UPDATE jobs SET cancel_requested_at = now() WHERE id = %s", [leased.id]
        )
        outcome = outcomes.retry(MINUTE, error="x")
        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(
                leases.finish, queue_connection, [(leased, outcome)], worker="w1"
            )
            wait_until(somebody_waits_for_a_lock, "the outcome waits for the request")
            second_connection.execute("COMMIT", [])
            assert writing.result(20) == {leased.id: Status.CANCELLED}
        assert Job.objects.get().status == Status.CANCELLED


def test_a_handler_may_cancel_its_job_though_nobody_asked(
    transaction_connection: TransactionConnection,
) -> None:
    add()
    leased = claim_one(transaction_connection)
    outcome = outcomes.cancelled("Cancelled: withdrawn", "trace")
    written = leases.finish(transaction_connection, [(leased, outcome)], worker="w1")
    assert written == {leased.id: Status.CANCELLED}
    job = Job.objects.get()
    assert (job.status, job.last_error) == (Status.CANCELLED, "Cancelled: withdrawn")
    assert job.completed_at is not None
    assert Attempt.objects.get().error == "Cancelled: withdrawn"


class TestExtend:
    def test_what_is_held_is_extended_and_what_is_lost_is_named(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add(3)
        batch = claims.claim(transaction_connection, claim_for(lease=MINUTE))
        complete(transaction_connection, batch[0])
        news = leases.extend(transaction_connection, batch, LeaseLengths(60 * MINUTE))
        assert news.lost == {batch[0].key}
        until = Job.objects.running().values_list("lease_until", flat=True)
        assert len(set(until)) == 1
        assert Job.objects.filter(lease_until__gt=Now() + 59 * MINUTE).count() == 2

    def test_each_by_the_length_of_its_type(
        self, transaction_connection: TransactionConnection
    ) -> None:
        job_handler("test.brief")(lambda context, payload: None)
        add(2)
        enqueue_many([NewJob(type="test.brief") for _ in range(2)])
        wanted = claim_for(types=("test.noop", "test.brief"))
        batch = claims.claim(transaction_connection, wanted)
        lengths = LeaseLengths(
            60 * MINUTE, {"test.brief": MINUTE, "test.other": MINUTE}
        )
        assert leases.extend(transaction_connection, batch, lengths) == (set(), set())
        left = {
            (job.type, (job.lease_until - job.started_at) // MINUTE)
            for job in Job.objects.running()
            if job.lease_until and job.started_at
        }
        assert len(batch) == 4
        assert left == {("test.noop", 60), ("test.brief", 1)}

    def test_a_row_that_is_just_being_written_is_not_waited_for(
        self, queue_connection: QueueConnection, second_connection: QueueConnection
    ) -> None:
        add()
        leased = claim_one(queue_connection)
        second_connection.execute("BEGIN", [])
        complete(second_connection, leased)
        lengths = LeaseLengths(MINUTE)
        assert leases.extend(queue_connection, [leased], lengths).lost == set()
        second_connection.execute("COMMIT", [])
        assert leases.extend(queue_connection, [leased], lengths).lost == {leased.key}


def test_only_expired_leases_are_locked_for_the_reaper(
    transaction_connection: TransactionConnection,
) -> None:
    add(2)
    batch = claims.claim(transaction_connection, claim_for())
    Job.objects.filter(pk=batch[0].id).update(lease_until=timezone.now() - MINUTE)
    (expired,) = leases.lock_expired(transaction_connection, 10)
    assert (expired.id, expired.lease_seq, expired.leased_by) == (batch[0].id, 1, "w1")


def test_expired_leases_are_found_among_the_running_only(db: None) -> None:
    rows_of_every_kind()
    plan = explain(leases._EXPIRED, {"most": 100, "after": leases.FIRST})
    assert "jobs_running" in plan
    assert "Seq Scan" not in plan
