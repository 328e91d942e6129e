from __future__ import annotations

import psycopg
import pytest

from tests.acw.torture.history import History


@pytest.fixture
def history(connection: psycopg.Connection) -> History:
    return History(connection)


def transitions(history: History) -> list[tuple[str | None, str | None]]:
    return history.connection.execute(
        "SELECT old_status, new_status FROM torture_transitions ORDER BY number"
    ).fetchall()


def test_every_step_of_a_job_is_noted_also_its_deletion(history: History):
    job = history.job()
    history.claimed(job)
    history.returned(job)
    history.claimed(job)
    history.completed(job)
    history.deleted(job)
    assert transitions(history) == [
        (None, "pending"),
        ("pending", "running"),
        ("running", "pending"),
        ("pending", "running"),
        ("running", "completed"),
        ("completed", None),
    ]


def test_what_is_rolled_back_is_not_noted(history: History):
    with history.connection.transaction(force_rollback=True):
        history.job()
    assert transitions(history) == []


def test_a_heartbeat_is_not_noted_and_the_lease_ends_when_it_was_extended_to(
    history: History,
):
    job = history.job()
    history.claimed(job, lease="-1 second")
    history.connection.execute(
        "UPDATE jobs SET lease_until = clock_timestamp() + interval '1 hour' WHERE id = %s",
        [job],
    )
    assert len(transitions(history)) == 2
    history.completed(job)
    row = history.connection.execute("SELECT expired FROM torture_leases").fetchone()
    assert row == (False,)


def test_a_lease_shows_who_had_it_and_what_became_of_it(history: History):
    job = history.job()
    history.claimed(job, pid=7, lease="-1 second")
    history.returned(job, error="worker lost: it gave no sign of life")
    history.claimed(job, pid=8)
    found = history.connection.execute(
        "SELECT lease_seq, pid, attempt, is_over, new_status, expired, refunded, error"
        " FROM torture_leases ORDER BY lease_seq"
    ).fetchall()
    lost = (
        *(1, 7, 1, True, "pending", True, 0),
        "worker lost: it gave no sign of life",
    )
    assert found == [lost, (2, 8, 2, False, None, None, None, None)]


def test_an_error_belongs_to_the_lease_that_it_ended_and_to_no_other(history: History):
    job = history.job()
    for error in ("the same", None, "the same"):
        history.claimed(job)
        history.returned(job, error=error)
    found = history.connection.execute(
        "SELECT error FROM torture_leases ORDER BY lease_seq"
    ).fetchall()
    assert found == [("the same",), (None,), ("the same",)]


def test_the_end_of_a_tick_is_noted_and_its_beginning_is_not(history: History):
    execute = history.connection.execute
    execute("INSERT INTO job_runners (name, interval) VALUES ('r', '1 hour')")
    execute("UPDATE job_runners SET last_outcome = 'running', last_worker = 'w'")
    noted = "SELECT runner, worker FROM torture_tick_ends"
    assert execute(noted).fetchall() == []
    execute("UPDATE job_runners SET last_outcome = 'completed'")
    assert execute(noted).fetchall() == [("r", "w")]
