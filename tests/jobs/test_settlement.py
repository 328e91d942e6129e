from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest
from django.db import connection

from jobs import claims, outcomes
from jobs.connection import Executes, QueueConnection
from jobs.enqueue import enqueue
from jobs.events import LogEvent
from jobs.finisher import write
from jobs.leases import LeasedJob
from jobs.models import Job, Status
from jobs.outcomes import COMPLETED, COMPLETED_AND_DELETED, Outcome
from jobs.settlement import settled
from tests.jobs.support import claim_for, claim_one

pytestmark = pytest.mark.django_db(transaction=True)

AGAIN = outcomes.retry(dt.timedelta(0), error="again")
DEAD = outcomes.dead("gone")


class Deaf:
    """A connection that is cut after the server has carried out its first statement."""

    def __init__(self, connection: Executes) -> None:
        self._connection = connection
        self.statements: list[str] = []

    def execute(self, query: str, parameters: Sequence[Any] | dict[str, Any]) -> Any:
        rows = self._connection.execute(query, parameters)
        self.statements.append(query)
        if len(self.statements) == 1:
            raise psycopg.OperationalError("the connection was cut")
        return rows


@pytest.fixture
def job(queue_connection: QueueConnection, noop: str) -> LeasedJob:
    enqueue(noop)
    return claim_one(queue_connection)


def warned(caplog: pytest.LogCaptureFixture) -> bool:
    return LogEvent.LEASE_LOST in [record.msg for record in caplog.records]


@pytest.mark.parametrize("outcome", [COMPLETED, COMPLETED_AND_DELETED, AGAIN])
@pytest.mark.parametrize("claiming", [True, False])
def test_an_outcome_whose_answer_was_lost_is_no_lost_lease(
    queue_connection: QueueConnection,
    job: LeasedJob,
    caplog: pytest.LogCaptureFixture,
    outcome: Outcome,
    claiming: bool,
) -> None:
    deaf = Deaf(queue_connection)
    wanted = claim_for(types=()) if claiming else None
    finished = [(job, outcome)]
    with pytest.raises(psycopg.OperationalError):
        write(deaf, finished, worker="w1", wanted=wanted)
    with caplog.at_level(logging.DEBUG, logger="jobs"):
        write(deaf, finished, worker="w1", wanted=wanted)
    assert finished == []
    assert not warned(caplog)
    event = LogEvent.FAIL_RETRY if outcome is AGAIN else LogEvent.COMPLETED
    assert event in [record.msg for record in caplog.records]


def test_a_death_whose_answer_was_lost_is_no_lost_lease(
    queue_connection: QueueConnection,
    job: LeasedJob,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    really_commit = psycopg.Connection.commit

    def commit(raw: psycopg.Connection[Any]) -> None:
        really_commit(raw)
        raw.close()
        raise psycopg.OperationalError("the connection was cut")

    finished = [(job, DEAD)]
    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Connection, "commit", commit)
        with pytest.raises(psycopg.OperationalError):
            write(queue_connection, finished, worker="w1")
    write(queue_connection, finished, worker="w1")
    assert Job.objects.get().status == Status.DEAD
    assert not warned(caplog)


@pytest.mark.parametrize("outcome", [COMPLETED, COMPLETED_AND_DELETED, AGAIN, DEAD])
@pytest.mark.parametrize("tried", [True, False])
def test_a_lease_that_has_passed_on_is_told_whatever_was_tried(
    queue_connection: QueueConnection,
    job: LeasedJob,
    caplog: pytest.LogCaptureFixture,
    outcome: Outcome,
    tried: bool,
) -> None:
    reaped = (
        "UPDATE jobs SET status = 'pending', lease_until = NULL, leased_by = NULL, "
        "last_error = 'worker lost'"
    )
    queue_connection.execute(reaped, [])
    entry = outcomes.tried(outcome) if tried else outcome
    write(queue_connection, [(job, entry)], worker="w1")
    assert warned(caplog)


def test_a_job_that_another_lease_completed_is_told(
    queue_connection: QueueConnection,
    job: LeasedJob,
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue_connection.execute(
        "UPDATE jobs SET status = 'completed', lease_until = NULL, completed_at = now(), lease_seq = lease_seq + 1",
        [],
    )
    write(queue_connection, [(job, outcomes.tried(COMPLETED))], worker="w1")
    assert warned(caplog)


def test_a_row_that_is_gone_is_ours_only_after_a_first_try(
    queue_connection: QueueConnection, job: LeasedJob
) -> None:
    queue_connection.execute("DELETE FROM jobs", [])
    once = outcomes.tried(COMPLETED_AND_DELETED)
    assert settled(queue_connection, [(job, COMPLETED_AND_DELETED)]) == {}
    assert settled(queue_connection, [(job, once)]) == {job.id: Status.COMPLETED}


def test_nothing_is_asked_where_no_outcome_was_refused(
    queue_connection: QueueConnection, job: LeasedJob
) -> None:
    deaf = Deaf(queue_connection)
    deaf.statements.append("")
    write(deaf, [(job, COMPLETED)], worker="w1")
    assert len(deaf.statements) == 2


def test_where_it_cannot_be_asked_the_next_batch_is_not_dropped(
    queue_connection: QueueConnection,
    noop: str,
    job: LeasedJob,
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Gone(Deaf):
        def execute(self, query: str, parameters: Any) -> Any:
            if "last_error FROM jobs" in query:
                raise psycopg.OperationalError("the connection was cut")
            return self._connection.execute(query, parameters)

    enqueue(noop)
    stale = job._replace(lease_seq=7)
    claimed = write(
        Gone(queue_connection), [(stale, COMPLETED)], worker="w1", wanted=claim_for()
    )
    assert len(claimed) == 1
    assert warned(caplog)


def test_a_cancellation_that_was_written_in_place_of_a_retry_is_ours(
    queue_connection: QueueConnection, job: LeasedJob
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs SET cancel_requested_at = now()")
    write(queue_connection, [(job, AGAIN)], worker="w1")
    once = outcomes.tried(AGAIN)
    assert settled(queue_connection, [(job, once)]) == {job.id: Status.CANCELLED}
    assert claims.claim(queue_connection, claim_for()) == []
