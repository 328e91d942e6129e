from __future__ import annotations

import datetime as dt

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from jobs import claims, leases, outcomes
from jobs.connection import QueueConnection, TransactionConnection
from jobs.models import Attempt, Job, Status
from tests.jobs.support import (
    add,
    claim_for,
    claim_one,
    complete,
    explain,
    rows_of_every_kind,
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
                == set()
            )
        assert leases.extend(transaction_connection, [stale], 60 * MINUTE) == {
            stale.key
        }
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
            == set()
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


class TestExtend:
    def test_what_is_held_is_extended_and_what_is_lost_is_named(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add(3)
        batch = claims.claim(transaction_connection, claim_for(lease=MINUTE))
        complete(transaction_connection, batch[0])
        lost = leases.extend(transaction_connection, batch, 60 * MINUTE)
        assert lost == {batch[0].key}
        until = Job.objects.running().values_list("lease_until", flat=True)
        assert len(set(until)) == 1
        assert Job.objects.filter(lease_until__gt=Now() + 59 * MINUTE).count() == 2

    def test_a_row_that_is_just_being_written_is_not_waited_for(
        self, queue_connection: QueueConnection, second_connection: QueueConnection
    ) -> None:
        add()
        leased = claim_one(queue_connection)
        second_connection.execute("BEGIN", [])
        complete(second_connection, leased)
        assert leases.extend(queue_connection, [leased], MINUTE) == set()
        second_connection.execute("COMMIT", [])
        assert leases.extend(queue_connection, [leased], MINUTE) == {leased.key}


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
