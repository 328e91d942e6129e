from __future__ import annotations

import logging
from collections.abc import Callable

import psycopg
import pytest
from django.db import connection, transaction

from jobs import claims
from jobs.connection import (
    UNAVAILABLE,
    Outage,
    QueueConnection,
    TransactionConnection,
    is_caused_by_outage,
)
from jobs.enqueue import NewJob, enqueue_many
from jobs.events import LogEvent
from tests.jobs.support import claim_for


def backend(connection: QueueConnection) -> int:
    pid: int = connection.execute("SELECT pg_backend_pid()", [])[0][0]
    return pid


def test_it_is_a_connection_of_its_own(queue_connection: QueueConnection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert cursor.fetchone() != (backend(queue_connection),)


def test_each_statement_commits_by_itself(
    queue_connection: QueueConnection, second_connection: QueueConnection
) -> None:
    queue_connection.execute(
        "INSERT INTO job_runners (name, interval) VALUES ('x', '1 h')", []
    )
    assert second_connection.execute("SELECT name FROM job_runners", []) == [("x",)]


def test_a_statement_without_rows_returns_none(
    queue_connection: QueueConnection,
) -> None:
    assert queue_connection.execute("SET application_name = 'x'", []) == []


def test_a_connection_that_was_cut_is_replaced_at_the_next_statement(
    queue_connection: QueueConnection, second_connection: QueueConnection
) -> None:
    before = backend(queue_connection)
    second_connection.execute("SELECT pg_terminate_backend(%s)", [before])
    with pytest.raises(UNAVAILABLE):
        backend(queue_connection)
    assert backend(queue_connection) != before


def test_who_only_notifies_does_not_stay_with_a_server_that_turned_read_only(
    queue_connection: QueueConnection,
) -> None:
    """A notification is taken there, and heard by nobody."""
    before = backend(queue_connection)
    notify = "SELECT pg_notify('acw_jobs', '')"
    # What the server says, by itself, once its configuration is another.
    queue_connection.execute("SET default_transaction_read_only = on", [])
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        queue_connection.execute(notify, [])
    queue_connection.execute(notify, [])
    assert backend(queue_connection) != before


def test_a_server_that_was_read_only_from_the_start_is_not_left_again_and_again(
    queue_connection: QueueConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        **connection.settings_dict["OPTIONS"],
        "options": "-c default_transaction_read_only=on",
    }
    with monkeypatch.context() as while_connecting:
        while_connecting.setitem(connection.settings_dict, "OPTIONS", options)
        before = backend(queue_connection)
    assert queue_connection.execute("SHOW default_transaction_read_only", []) == [
        ("on",)
    ]
    assert backend(queue_connection) == before


def test_a_server_that_turned_read_only_costs_the_connection(
    queue_connection: QueueConnection,
) -> None:
    """As after a failover: whoever stays connected would fail for ever."""
    before = backend(queue_connection)
    queue_connection.execute("SET default_transaction_read_only = on", [])
    with pytest.raises(UNAVAILABLE):
        queue_connection.execute("DELETE FROM jobs", [])
    assert backend(queue_connection) != before
    assert queue_connection.execute("DELETE FROM jobs", []) == []


def test_an_error_in_a_statement_keeps_the_connection(
    queue_connection: QueueConnection,
) -> None:
    before = backend(queue_connection)
    with pytest.raises(psycopg.errors.UndefinedTable):
        queue_connection.execute("SELECT FROM no_such_table", [])
    assert backend(queue_connection) == before


def test_a_migration_beside_costs_a_prepared_statement_and_no_worker(
    queue_connection: QueueConnection, second_connection: QueueConnection, noop: str
) -> None:
    enqueue_many([NewJob(type=noop) for _ in range(5)])
    one = claim_for(queues={"default": 1})
    for _ in range(4):
        claims.claim(queue_connection, one)
    second_connection.execute("ALTER TABLE jobs ALTER ref_id TYPE text", [])
    try:
        assert len(claims.claim(queue_connection, one)) == 1
    finally:
        second_connection.execute("ALTER TABLE jobs ALTER ref_id TYPE varchar(200)", [])


def test_what_no_server_can_do_is_told_and_not_tried_for_ever(
    queue_connection: QueueConnection,
) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        queue_connection.execute("SELECT count(*) FROM jobs FOR UPDATE", [])


def raised(error: Exception, *, during: Exception | None = None) -> Exception:
    try:
        try:
            if during is not None:
                raise during
        finally:
            raise error
    except Exception as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (psycopg.errors.ReadOnlySqlTransaction("25006"), True),
        (psycopg.OperationalError("the connection is closed"), True),
        (raised(ValueError(), during=psycopg.errors.AdminShutdown("57P01")), True),
        (raised(ValueError(), during=psycopg.errors.DeadlockDetected("40P01")), False),
        (ValueError(), False),
    ],
    ids=["read-only", "closed", "hidden", "deadlock", "another"],
)
def test_an_outage_is_found_behind_what_was_raised_for_it(
    error: Exception, away: bool
) -> None:
    assert is_caused_by_outage(error) is away


def test_errors_that_name_each_other_as_their_cause_end() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    assert not is_caused_by_outage(first)


def test_closing_twice_is_harmless(queue_connection: QueueConnection) -> None:
    backend(queue_connection)
    queue_connection.close()
    queue_connection.close()


@pytest.mark.django_db
def test_a_transaction_connection_writes_in_the_open_transaction() -> None:
    with transaction.atomic():
        TransactionConnection().execute(
            "INSERT INTO job_runners (name, interval) VALUES (%s, '1 h')", ["x"]
        )
        transaction.set_rollback(True)
    assert TransactionConnection().execute("SELECT name FROM job_runners", []) == []


def test_an_outage_is_logged_at_its_start_and_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outage = Outage("part")
    with caplog.at_level(logging.INFO, logger="jobs"):
        outage.passed()
        for _ in range(5):
            outage.failed(psycopg.OperationalError("gone"))
        outage.passed()
        outage.passed()
    assert [record.msg for record in caplog.records] == [
        LogEvent.DATABASE_UNAVAILABLE,
        LogEvent.DATABASE_RECOVERED,
    ]


def test_its_pauses_grow_up_to_a_limit() -> None:
    outage = Outage("part")
    wait: Callable[[], float] = lambda: outage.failed(psycopg.OperationalError())  # noqa: E731
    pauses = [wait() for _ in range(60)]
    assert pauses[0] <= 0.1
    assert max(pauses) <= 5
    assert min(pauses[10:]) >= 2.5


def prepared(connection: QueueConnection) -> int:
    for _ in range(4):
        connection.execute("SELECT 'often'", [])
    query = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%often%%' AND statement NOT LIKE '%%count%%'"
    count: int = connection.execute(query, [])[0][0]
    return count


def test_what_is_executed_often_is_planned_once(
    queue_connection: QueueConnection,
) -> None:
    assert prepared(queue_connection) == 1


def test_behind_a_pooler_nothing_is_prepared(
    queue_connection: QueueConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pooler gives out process ids of its own; there is none here."""
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", 1)
    assert prepared(queue_connection) == 0
