"""What users of other queues report, where it is no single module's affair."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from jobs import claims, leases, outcomes
from jobs.connection import QueueConnection, TransactionConnection
from jobs.context import JobContext
from jobs.enqueue import NewJob, enqueue_many
from jobs.models import Attempt, Job, Status
from jobs.pool import Pool
from jobs.registry import job_handler
from jobs.selection import Queues
from jobs.testing import PATIENCE
from tests.jobs.support import add, claim_for, claim_one, complete, explain

SECOND = dt.timedelta(seconds=1)


class TestTheReaperIsLate:
    """It has read which leases have expired; before it writes, the jobs go on."""

    @pytest.fixture
    def expired(
        self, transaction_connection: TransactionConnection, noop: str
    ) -> leases.ExpiredLease:
        add()
        self.held = claim_one(transaction_connection)
        Job.objects.update(lease_until=Now() - SECOND)
        with transaction.atomic():
            (lease,) = leases.lock_expired(transaction_connection, 10)
        return lease

    def test_what_was_completed_stays_completed(
        self,
        transaction_connection: TransactionConnection,
        expired: leases.ExpiredLease,
    ) -> None:
        assert complete(transaction_connection, self.held) == {self.held.id}
        self.reap(transaction_connection, expired)
        job = Job.objects.get()
        assert (job.status, job.last_error) == (Status.COMPLETED, "")

    def test_what_was_claimed_again_stays_the_new_workers(
        self,
        transaction_connection: TransactionConnection,
        expired: leases.ExpiredLease,
    ) -> None:
        again = outcomes.retry(-SECOND, error="again")
        leases.finish(transaction_connection, [(self.held, again)], worker="w1")
        held = claim_one(transaction_connection, "w2")
        self.reap(transaction_connection, expired)
        job = Job.objects.get()
        assert (job.status, job.leased_by, job.lease_seq) == (
            Status.RUNNING,
            "w2",
            held.lease_seq,
        )
        assert [attempt.error for attempt in Attempt.objects.all()] == ["again"]

    def reap(
        self, connection: TransactionConnection, expired: leases.ExpiredLease
    ) -> None:
        lost = outcomes.retry(SECOND, error="worker lost")
        assert not leases.finish(connection, [(expired, lost)], worker="w1")


class TestABacklog:
    """However much lies there, a claim reads what it takes."""

    WANTED = 20

    @pytest.fixture(autouse=True)
    def noop_type(self, db: None, noop: str) -> None: ...

    def put(self, count: int, **columns: Any) -> None:
        values = {"type": "test.noop", "queue": "default", "priority": 2, **columns}
        with connection.cursor() as cursor:
            cursor.execute(
                """
                INSERT INTO jobs (id, type, queue, priority, run_at, payload)
                SELECT gen_random_uuid(), %s, %s, %s, now() - interval '1 hour', '{}' FROM generate_series(1, %s)
                """,
                [*values.values(), count],
            )
            cursor.execute("ANALYZE jobs")

    def read(self) -> float:
        """The rows that one claim has read in the index of due jobs."""
        wanted = claim_for(queues={"default": self.WANTED})
        plan = json.loads(explain(claims._CLAIM, claims._parameters(wanted)))
        read = 0.0
        for node in _nodes(plan[0]["Plan"]):
            if node.get("Index Name") == "jobs_due":
                rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                read += rows * node["Actual Loops"]
        return read

    def test_of_jobs_that_are_all_due_at_the_same_moment(self) -> None:
        self.put(20_000)
        assert self.read() == self.WANTED

    def test_of_a_better_priority_in_a_queue_that_is_not_served(self) -> None:
        self.put(20_000, queue="other", priority=0)
        self.put(100)
        assert self.read() == self.WANTED


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


@pytest.mark.django_db(transaction=True)
def test_a_thread_has_one_connection_of_its_own_and_one_of_its_handlers(
    queue_connection: QueueConnection,
) -> None:
    open_now = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    )
    before = queue_connection.execute(open_now, [])[0][0]
    counts: list[int] = []

    def handler(context: JobContext, payload: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(open_now)
            counts.append(cursor.fetchone()[0])

    job_handler("test.query")(handler)
    enqueue_many([NewJob(type="test.query") for _ in range(500)])
    pool = Pool(
        worker="w1",
        threads=2,
        queues=Queues(["default"]),
        lease=dt.timedelta(minutes=5),
        drain=True,
    )
    pool.start()
    assert pool.join(time.monotonic() + PATIENCE)
    pool.close()
    assert len(counts) == 500
    # And the one by which enqueue_many wakes the workers.
    # And the pool's own, and that which tells of new work.
    assert max(counts) <= before + 2 * len(pool.threads) + 2
