from __future__ import annotations

import datetime as dt
import json
import threading
import uuid
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from jobs import claims, leases
from jobs.connection import Executes, QueueConnection, TransactionConnection
from jobs.enqueue import NewJob, enqueue, enqueue_many
from jobs.leases import LeasedJob
from jobs.models import Job, Priority, Status, WorkerProcess
from jobs.registry import job_handler
from jobs.testing import wait_until
from tests.jobs.support import add, claim_for, claim_one, explain, rows_of_every_kind

MINUTE = dt.timedelta(minutes=1)
HOUR = 60 * MINUTE


@pytest.fixture(autouse=True)
def types(noop: str) -> None: ...


def lease_of(job_id: uuid.UUID) -> dt.timedelta:
    job = Job.objects.get(pk=job_id)
    assert job.lease_until
    assert job.started_at
    return job.lease_until - job.started_at


class TestClaim:
    def test_it_leases_on_the_databases_clock(
        self, transaction_connection: TransactionConnection
    ) -> None:
        (job_id,) = add()
        leased = claim_one(transaction_connection)
        stored = Job.objects.get(pk=job_id)
        assert (leased.id, leased.lease_seq, leased.attempts) == (job_id, 1, 1)
        assert (stored.status, stored.leased_by, stored.attempts) == (
            Status.RUNNING,
            "w1",
            1,
        )
        assert stored.started_at is not None
        assert stored.lease_until == stored.started_at + dt.timedelta(minutes=5)

    def test_in_a_mixed_batch_each_lease_is_as_long_as_its_type_says(
        self, transaction_connection: TransactionConnection
    ) -> None:
        names = ("test.noop", "test.brief", "test.long", 'of "odd", {name}s\\')
        lengths = dict(zip(names[1:], (MINUTE, HOUR, 1.5 * MINUTE), strict=True))
        for name in names[1:]:
            job_handler(name)(lambda context, payload: None)
        enqueue_many([NewJob(type=name) for name in names * 2])
        wanted = claim_for(types=names, own_leases=lengths)
        assert len(claims.claim(transaction_connection, wanted)) == 8
        lasts = {(job.type, lease_of(job.pk)) for job in Job.objects.running()}
        assert lasts == {("test.noop", 5 * MINUTE), *lengths.items()}

    def test_also_in_one_that_is_claimed_with_a_completion(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add(2)
        held = claim_one(transaction_connection)
        wanted = claim_for(own_leases={"test.noop": MINUTE})
        _, (job,) = claims.complete_and_claim(
            transaction_connection, leases.completion([held]), wanted
        )
        assert lease_of(job.id) == MINUTE

    def test_the_order_is_priority_then_run_at(
        self, transaction_connection: TransactionConnection
    ) -> None:
        now = timezone.now()
        wanted = [
            enqueue("test.noop", priority=priority, run_at=now - age, queue=queue).id
            for priority, age, queue in [
                (Priority.URGENT, 1 * MINUTE, "b"),
                (Priority.HIGH, 9 * MINUTE, "a"),
                (Priority.NORMAL, 8 * MINUTE, "b"),
                (Priority.NORMAL, 7 * MINUTE, "a"),
                (Priority.LOW, 10 * MINUTE, "a"),
            ]
        ]
        batch = claims.claim(
            transaction_connection, claim_for(queues={"a": 10, "b": 10})
        )
        assert [job.id for job in batch] == wanted

    def test_what_is_not_due_or_not_pending_is_left(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add(run_at=timezone.now() + MINUTE)
        add(3)
        for job, status in zip(
            Job.objects.due(),
            (Status.COMPLETED, Status.DEAD, Status.CANCELLED),
            strict=True,
        ):
            Job.objects.filter(pk=job.pk).update(status=status, completed_at=Now())
        assert claims.claim(transaction_connection, claim_for()) == []

    def test_other_queues_and_types_are_left(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add(queue="other")
        Job.objects.filter(pk=add()[0]).update(type="test.newer")
        assert claims.claim(transaction_connection, claim_for()) == []

    def test_never_more_than_asked_for(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add(50)
        with connection.cursor() as cursor:
            # With these plans, a plain IN (SELECT … LIMIT) was seen to take all fifty.
            cursor.execute(
                "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"
            )
        assert (
            len(claims.claim(transaction_connection, claim_for(queues={"default": 7})))
            == 7
        )
        assert Job.objects.running().count() == 7

    def test_a_batch_ends_with_the_job_that_fills_the_budget(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add(30)
        batch = claims.claim(transaction_connection, claim_for(cost=0.03))
        assert len(batch) == 4
        assert len(claims.claim(transaction_connection, claim_for(cost=60))) == 1

    def test_nothing_waits_in_a_batch_behind_a_slow_job(
        self, transaction_connection: TransactionConnection
    ) -> None:
        now = timezone.now()
        for age, name in [(3, "test.noop"), (2, "test.slow"), (1, "test.noop")]:
            (job_id,) = add(run_at=now - age * MINUTE)
            Job.objects.filter(pk=job_id).update(type=name)
        wanted = claim_for()
        wanted.costs["test.slow"] = 2.0  # type: ignore[index]
        batch = claims.claim(transaction_connection, wanted)
        assert [job.type for job in batch] == ["test.noop", "test.slow"]

    def test_a_payload_that_python_cannot_read_does_not_take_the_batch_with_it(
        self, transaction_connection: TransactionConnection
    ) -> None:
        ids = add(10)
        with connection.cursor() as cursor:
            deep = '{"a": ' + "[" * 5_000 + "]" * 5_000 + "}"
            cursor.execute("UPDATE jobs SET payload = %s WHERE id = %s", [deep, ids[3]])
            digits = '{"a": ' + "9" * 5_000 + "}"
            cursor.execute(
                "UPDATE jobs SET payload = %s WHERE id = %s", [digits, ids[4]]
            )
        assert len(claims.claim(transaction_connection, claim_for())) == 10

    def test_attempts_at_the_end_of_their_range_do_not_stall_it(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add(2)
        Job.objects.filter(pk=Job.objects.earliest("id").pk).update(attempts=2**31 - 1)
        assert len(claims.claim(transaction_connection, claim_for())) == 2

    def test_two_workers_never_get_the_same_job(
        self, queue_connection: QueueConnection, second_connection: QueueConnection
    ) -> None:
        add(200)
        taken: dict[str, list[uuid.UUID]] = {"w1": [], "w2": []}
        start = threading.Barrier(2)

        def work(connection: QueueConnection, worker: str) -> None:
            start.wait()
            while batch := claims.claim(
                connection, claim_for(worker, queues={"default": 5})
            ):
                taken[worker] += [job.id for job in batch]

        threads = [
            threading.Thread(target=work, args=[queue_connection, "w1"]),
            threading.Thread(target=work, args=[second_connection, "w2"]),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        both = taken["w1"] + taken["w2"]
        assert len(both) == len(set(both)) == 200
        assert set(Job.objects.values_list("lease_seq", "attempts")) == {(1, 1)}


class TestPlan:
    """The plan is what keeps a claim at the cost of an empty table."""

    WANTED = claim_for(queues={"default": 20, "a": 20, "b": 20})

    @pytest.mark.parametrize("floored", [False, True])
    def test_a_claim_walks_the_due_index_and_sorts_no_pending_rows(
        self, db: None, floored: bool
    ) -> None:
        rows_of_every_kind()
        long_ago = timezone.now() - 2 * HOUR
        floors = dict.fromkeys(self.WANTED.limits, long_ago)
        wanted = replace(self.WANTED, floors=floors if floored else {})
        self.check(explain(claims._CLAIM, claims._parameters(wanted)))

    def test_completing_and_claiming_together_reads_no_more(
        self, transaction_connection: TransactionConnection
    ) -> None:
        rows_of_every_kind()
        kept, gone = (
            claims.claim(transaction_connection, claim_for(queues={"default": 20}))
            for _ in range(2)
        )
        done = leases.completion(kept, gone)
        parameters = claims._parameters(self.WANTED) | done.parameters
        self.check(explain(claims._together(done), parameters))

    def check(self, plan: str) -> None:
        nodes = list(_nodes(json.loads(plan)[0]["Plan"]))
        assert "Seq Scan" not in {
            node["Node Type"] for node in nodes if node.get("Relation Name") == "jobs"
        }
        indexes = {node["Index Name"]: node for node in nodes if "Index Name" in node}
        # Not jobs_running: beside a transaction that holds back vacuum it is full of dead entries.
        assert set(indexes) == {"jobs_due", "jobs_pkey"}
        due = indexes["jobs_due"]
        for column in ("queue", "priority", "run_at"):
            assert column in due["Index Cond"]
        # Sorted is what was found, never what waits.
        found = sum(self.WANTED.limits.values())
        assert all(node["Actual Rows"] <= found for node in nodes)
        # And nothing is compared with everything.
        compared = [node.get("Rows Removed by Join Filter", 0) for node in nodes]
        assert max(compared) <= found

    def test_the_queues_with_work_are_walked_not_counted(self, db: None) -> None:
        rows_of_every_kind()
        plan = explain(claims._PENDING_QUEUES, {})
        assert "Seq Scan" not in plan
        assert claims.pending_queues(TransactionConnection()) == {"default", "a", "b"}


def _nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    children = plan.get("Plans", [])
    return [plan, *(node for child in children for node in _nodes(child))]


class TestBatch:
    def test_a_level_that_gave_all_it_was_asked_for_ends_the_batch(
        self, transaction_connection: TransactionConnection
    ) -> None:
        """There may be more of it, which comes before everything else that was found."""
        add(3, priority=Priority.URGENT)
        add(3, priority=Priority.NORMAL)
        wanted = claim_for(queues={"default": 2})
        batches = [claims.claim(transaction_connection, wanted) for _ in range(4)]
        assert [[job.priority for job in batch] for batch in batches] == [
            [0, 0],
            [0, 2, 2],
            [2],
            [],
        ]

    def test_payloads_that_are_large_when_they_are_read_come_a_few_at_a_time(
        self,
        transaction_connection: TransactionConnection,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """However small they are stored: these are compressed to a hundredth."""
        monkeypatch.setattr(claims, "LARGEST_BATCH_BYTES", 250_000)
        add(5, payload={"text": "x" * 100_000})
        batch = claims.claim(transaction_connection, claim_for())
        assert len(batch) == 3

    @pytest.mark.django_db(transaction=True)
    def test_a_lock_on_a_completed_row_hides_no_job_that_is_due(
        self, queue_connection: QueueConnection, second_connection: QueueConnection
    ) -> None:
        """The completion waits; what would be claimed with it is not locked meanwhile."""
        add(3)
        held = claim_one(queue_connection)
        second_connection.execute("BEGIN", [])
        second_connection.execute(
            "SELECT FROM jobs WHERE id = %s FOR UPDATE", [held.id]
        )
        both = threading.Thread(
            target=claims.complete_and_claim,
            args=[queue_connection, leases.completion([held]), claim_for("w1")],
        )
        both.start()
        # Not on the connection whose transaction is open: it would see the first answer again and again.
        looking = TransactionConnection()
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
        wait_until(lambda: looking.execute(waiting, ["%marked%"]), "it waits")
        assert len(claims.claim(second_connection, claim_for("w2"))) == 2
        second_connection.execute("ROLLBACK", [])
        both.join(20)
        assert not both.is_alive()


class TestTogether:
    """Completing one batch and claiming the next in one statement."""

    def test_both_happen(self, transaction_connection: TransactionConnection) -> None:
        add(4)
        first, second = claims.claim(
            transaction_connection, claim_for(queues={"default": 2})
        )
        lost, claimed = claims.complete_and_claim(
            transaction_connection,
            leases.completion([first], [second]),
            claim_for(queues={"default": 1}),
        )
        assert lost == set()
        assert Job.objects.get(pk=first.id).status == Status.COMPLETED
        assert not Job.objects.filter(pk=second.id).exists()
        (third,) = claimed
        assert third.attempts == 1
        assert Job.objects.get(pk=third.id).leased_by == "w1"

    def test_what_was_lost_is_named_and_changes_nothing(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add(4)
        kept, gone = claims.claim(
            transaction_connection, claim_for(queues={"default": 2})
        )
        stale = [job._replace(lease_seq=0) for job in (kept, gone)]
        lost, claimed = claims.complete_and_claim(
            transaction_connection,
            leases.completion(stale[:1], stale[1:]),
            claim_for(),
        )
        assert lost == {kept.id, gone.id}
        assert len(claimed) == 2
        assert {job.id for job in claimed}.isdisjoint(lost)
        assert Job.objects.running().count() == 4

    def test_with_nothing_due_the_completed_are_written_all_the_same(
        self, transaction_connection: TransactionConnection
    ) -> None:
        add()
        job = claim_one(transaction_connection)
        assert claims.complete_and_claim(
            transaction_connection, leases.completion([job]), claim_for()
        ) == (set(), [])
        assert Job.objects.get().status == Status.COMPLETED


class TestUnknownTypes:
    def claim(self, connection: Executes) -> list[LeasedJob]:
        return claims.claim_unknown(connection, claim_for(), grace=10 * MINUTE, most=20)

    def unknown(self, age: dt.timedelta) -> None:
        (job_id,) = add(run_at=timezone.now() - age)
        Job.objects.filter(pk=job_id).update(type="test.newer")

    def test_within_the_grace_it_is_left_for_a_worker_that_knows_it(
        self, transaction_connection: TransactionConnection
    ) -> None:
        self.unknown(9 * MINUTE)
        assert self.claim(transaction_connection) == []

    def test_past_the_grace_any_worker_takes_it(
        self, transaction_connection: TransactionConnection
    ) -> None:
        self.unknown(11 * MINUTE)
        assert [job.type for job in self.claim(transaction_connection)] == [
            "test.newer"
        ]

    def test_its_lease_is_as_long_as_that_of_a_type_without_one_of_its_own(
        self, transaction_connection: TransactionConnection
    ) -> None:
        self.unknown(11 * MINUTE)
        wanted = claim_for(own_leases={"test.noop": MINUTE})
        (job,) = claims.claim_unknown(
            transaction_connection, wanted, grace=10 * MINUTE, most=20
        )
        assert lease_of(job.id) == 5 * MINUTE

    def test_a_backlog_of_a_type_that_another_worker_knows_is_no_unknown_type(
        self, transaction_connection: TransactionConnection
    ) -> None:
        self.unknown(60 * MINUTE)
        WorkerProcess.objects.create(
            name="w2", host="h", pid=1, threads=1, types=["test.newer"]
        )
        assert self.claim(transaction_connection) == []
        WorkerProcess.objects.update(beat_at=timezone.now() - dt.timedelta(days=1))
        assert len(self.claim(transaction_connection)) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("noop")
def test_barren_is_where_nothing_is_due_though_a_claim_would_get_nothing_either(
    queue_connection: QueueConnection, second_connection: QueueConnection
) -> None:
    add(1, priority=Priority.URGENT)
    add(1, priority=Priority.HIGH)
    add(1, priority=Priority.LOW, run_at=timezone.now() + dt.timedelta(hours=1))
    Job.objects.create(type="test.of_a_newer_version", priority=Priority.NORMAL)
    with second_connection.raw().transaction():
        second_connection.execute(
            "SELECT FROM jobs WHERE priority = 0 FOR NO KEY UPDATE", []
        )
        levels, at = claims.barren(queue_connection, claim_for())
    assert set(levels) == {("default", Priority.NORMAL), ("default", Priority.LOW)}
    assert at is not None
    add(1)
    add(1, priority=Priority.LOW)
    assert claims.barren(queue_connection, claim_for()) == ([], None)
