from __future__ import annotations

import datetime as dt

import psycopg
import pytest
from pytest_django import Settings

from jobs import claims, orphans
from jobs.connection import Executes, QueueConnection
from jobs.leases import LeasedJob
from jobs.models import Job, Status
from jobs.orphans import Orphans
from jobs.pool import Pool
from jobs.selection import Queues
from jobs.testing import wait_until
from tests.jobs.support import add, claim_for

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("noop"),
]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(orphans, "time", clock)
    return clock


@pytest.fixture
def leased(queue_connection: QueueConnection) -> list[LeasedJob]:
    add(2)
    return claims.claim(queue_connection, claim_for("w1"))


def test_what_no_thread_holds_is_found_at_the_second_look(
    queue_connection: QueueConnection, leased: list[LeasedJob], clock: Clock
):
    known, orphan = leased
    found = Orphans("w1", list)
    found.suspect(clock.now)
    assert found.look(queue_connection, lambda: [known]) == []
    clock.now += orphans.SETTLE
    (job,) = found.look(queue_connection, lambda: [known])
    assert job.key == orphan.key
    clock.now += orphans.SETTLE
    assert found.look(queue_connection, list) == []


def test_without_a_failed_claim_nothing_is_asked(leased: list[LeasedJob]):
    class Silent:
        def execute(self, query: str, parameters: object) -> list[object]:
            raise AssertionError(query)

    assert Orphans("w1", list).look(Silent(), list) == []


def test_what_turns_up_in_a_thread_meanwhile_is_none(
    queue_connection: QueueConnection, leased: list[LeasedJob], clock: Clock
):
    found = Orphans("w1", list)
    found.suspect(clock.now)
    assert found.look(queue_connection, list) == []
    clock.now += orphans.SETTLE
    assert found.look(queue_connection, lambda: leased) == []


def test_a_claim_under_way_since_before_the_first_look_is_waited_for(
    queue_connection: QueueConnection, leased: list[LeasedJob], clock: Clock
):
    asking = [clock.now]
    found = Orphans("w1", lambda: asking)
    found.suspect(clock.now)
    clock.now += 1
    assert found.look(queue_connection, list) == []
    clock.now += orphans.SETTLE
    assert found.look(queue_connection, list) == []
    asking[:] = [clock.now]
    assert len(found.look(queue_connection, list)) == 2


def test_what_was_leased_long_before_is_no_orphan_of_this_claim(
    queue_connection: QueueConnection, leased: list[LeasedJob], clock: Clock
):
    Job.objects.update(started_at=dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
    found = Orphans("w1", list)
    found.suspect(clock.now)
    assert found.look(queue_connection, list, last=True) == []


def test_at_the_end_one_look_is_enough(
    queue_connection: QueueConnection, leased: list[LeasedJob], clock: Clock
):
    found = Orphans("w1", list)
    found.suspect(clock.now)
    assert len(found.look(queue_connection, list, last=True)) == 2


def test_a_claim_whose_answer_is_lost_costs_neither_an_attempt_nor_a_lease(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
):
    """The first answer is lost after the commit; the lease of an hour is not waited for."""
    whole = claims.claim
    lost: list[LeasedJob] = []

    def lossy(connection: Executes, wanted: claims.Claim) -> list[LeasedJob]:
        jobs = whole(connection, wanted)
        if jobs and not lost:
            lost.extend(jobs)
            raise psycopg.OperationalError("the connection is cut after the commit")
        return jobs

    monkeypatch.setattr(claims, "claim", lossy)
    settings.JOBS_POLL_INTERVAL = dt.timedelta(milliseconds=50)
    add(3)
    pool = Pool(
        worker="w1", threads=1, queues=Queues(["default"]), lease=dt.timedelta(hours=1)
    )
    pool.start()

    def done() -> bool:
        pool.tend()
        return Job.objects.filter(status=Status.COMPLETED).count() == 3

    wait_until(done, "all jobs done")
    pool.stop()
    pool.flush()
    assert pool.join(float("inf"))
    pool.close()
    assert lost
    assert set(Job.objects.values_list("attempts", flat=True)) == {1}
    assert set(
        Job.objects.filter(pk__in=[j.id for j in lost]).values_list(
            "lease_seq", flat=True
        )
    ) == {2}
