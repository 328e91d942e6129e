from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from jobs.bounded import BoundedConnection, NoAnswerError
from jobs.connection import UNAVAILABLE, QueueConnection, is_away
from jobs.progress import Progress
from jobs.testing import wait_until
from tests.jobs.factories import JobFactory

pytestmark = pytest.mark.django_db(transaction=True)

TOUCH = "UPDATE jobs SET priority = 1"


@pytest.fixture
def bounded() -> Iterator[BoundedConnection]:
    connection = BoundedConnection(seconds=0.1)
    with connection:
        yield connection


def test_it_returns_rows_and_commits(bounded: BoundedConnection) -> None:
    JobFactory()
    bounded.execute(TOUCH, [])
    assert bounded.execute("SELECT priority FROM jobs", []) == [(1,)]
    bounded.close()
    assert bounded.execute("SELECT priority FROM jobs", []) == [(1,)]


def test_a_lock_is_not_waited_for_longer_than_the_bound(
    bounded: BoundedConnection, queue_connection: QueueConnection
) -> None:
    with queue_connection.raw().transaction():
        queue_connection.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE", [])
        with pytest.raises(NoAnswerError, match=r"no answer within 0\.1 s") as caught:
            bounded.execute(TOUCH, [])
    assert isinstance(caught.value, UNAVAILABLE)
    # As what is refused for good, an outcome that waits to be written would be given up.
    assert is_away(caught.value)
    assert bounded.execute(TOUCH, []) == []


def test_the_bound_does_not_stay_with_the_session(bounded: BoundedConnection) -> None:
    bounded.execute("SELECT 1", [])
    with bounded.raw().cursor() as cursor:
        assert cursor.execute("SHOW statement_timeout").fetchone() == ("0",)


def test_each_statement_that_ends_is_progress(settings: Settings) -> None:
    settings.JOBS_STALL_AFTER = dt.timedelta(milliseconds=200)
    progress = Progress("part")
    with BoundedConnection(progress) as connection:
        connection.execute("SELECT 1", [])
        assert progress.count == 1
        with pytest.raises(NoAnswerError):
            connection.execute("SELECT pg_sleep(60)", [])
        assert progress.count == 2


def test_a_statement_prepared_before_a_migration_is_prepared_again(
    bounded: BoundedConnection, queue_connection: QueueConnection
) -> None:
    queue_connection.execute("CREATE TABLE test_plan (a int)", [])
    try:
        for _ in range(5):
            bounded.execute("SELECT * FROM test_plan", [])
        queue_connection.execute("ALTER TABLE test_plan ADD b int", [])
        assert bounded.execute("SELECT * FROM test_plan", []) == []
        assert bounded.execute("SELECT 1", []) == [(1,)]
    finally:
        queue_connection.execute("DROP TABLE test_plan", [])


def test_a_commit_that_waits_for_a_standby_is_not_waited_for_either(
    queue_connection: QueueConnection,
) -> None:
    """PostgreSQL has no time limit for it; the cancel that ends the wait leaves the transaction committed."""
    name = queue_connection.execute("SELECT current_database()", [])[0][0]
    with BoundedConnection(seconds=0.2) as bounded:
        pid = bounded.execute("SELECT pg_backend_pid()", [])[0][0]
        queue_connection.execute(
            "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", []
        )
        queue_connection.execute("SELECT pg_reload_conf()", [])
        try:
            bounded.raw().execute("SET synchronous_commit = on")
            wait_until(
                lambda: (
                    queue_connection.execute("SHOW synchronous_standby_names", [])
                    == [("nobody",)]
                ),
                "the server waits for a standby",
            )
            bounded.execute(
                "INSERT INTO job_runners (name, interval) VALUES (%s, '1 min')", [name]
            )
        finally:
            queue_connection.execute("SET synchronous_commit = local", [])
            queue_connection.execute("ALTER SYSTEM RESET synchronous_standby_names", [])
            queue_connection.execute("SELECT pg_reload_conf()", [])
        assert bounded.execute("SELECT pg_backend_pid()", []) == [(pid,)]
    assert queue_connection.execute("SELECT name FROM job_runners", []) == [(name,)]


def test_one_that_is_suspended_in_between_holds_its_locks_no_longer(
    bounded: BoundedConnection, queue_connection: QueueConnection
) -> None:
    JobFactory()
    suspended = bounded.raw()
    suspended.execute("BEGIN")
    bounded._execute_bound(0.2)
    suspended.execute(TOUCH)
    pid = suspended.info.backend_pid
    # As if this process was stopped here.
    wait_until(
        lambda: (
            not queue_connection.execute(
                "SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid]
            )
        ),
        "the server ends the session",
    )
    with pytest.raises(UNAVAILABLE) as caught:
        suspended.execute(TOUCH)
    assert is_away(caught.value)
    bounded.close()
    assert bounded.execute(TOUCH, []) == []
