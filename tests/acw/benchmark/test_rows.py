from __future__ import annotations

import psycopg
import pytest

from acw.benchmark import rows
from acw.benchmark.errors import CountError
from acw.benchmark.rows import Filled
from jobs.identifiers import uuid7


@pytest.fixture
def filled(connection: psycopg.Connection) -> Filled:
    return rows.fill(connection, 600)


def complete(connection: psycopg.Connection, where: str = "true") -> None:
    connection.execute(
        f"UPDATE jobs SET status = 'completed', completed_at = now() WHERE {where}"
    )


def test_jobs_are_due_and_their_ids_are_in_order(
    connection: psycopg.Connection, filled: Filled
):
    found = connection.execute(
        "SELECT count(*), count(*) FILTER (WHERE status = 'pending' AND run_at <= now()), min(id::text) FROM jobs"
    ).fetchone()
    assert found is not None
    assert found[:2] == (600, 600)
    assert filled.lowest <= found[2] <= str(uuid7())


def test_payloads_take_turns(connection: psycopg.Connection):
    rows.fill(connection, 4, payloads=('{"n": 1}', '{"n": 2}'))
    found = connection.execute("SELECT payload ->> 'n' FROM jobs ORDER BY id")
    assert [n for (n,) in found] == ["1", "2", "1", "2"]


@pytest.mark.parametrize("state", rows.STATES)
def test_a_seed_is_no_job_that_is_due(connection: psycopg.Connection, state: str):
    rows.seed(connection, state, 5)
    due = "status IN ('pending', 'running') AND run_at <= now()"
    counts = connection.execute(
        f"SELECT count(*), count(*) FILTER (WHERE {due}) FROM jobs"
    )
    assert counts.fetchone() == (5, 0)


def test_all_completed_passes_and_seeds_do_not_count(
    connection: psycopg.Connection,
):
    for state in rows.STATES:
        rows.seed(connection, state, 5)
    filled = rows.fill(connection, 600)
    complete(connection, "status = 'pending' AND run_at <= now()")
    rows.check(connection, filled, handled=600, kept=True)


def test_all_deleted_passes_where_nothing_is_kept(
    connection: psycopg.Connection, filled: Filled
):
    connection.execute("DELETE FROM jobs")
    rows.check(connection, filled, handled=600, kept=False)


@pytest.mark.parametrize("handled", [599, 601])
def test_lost_and_repeated_jobs_are_refused(
    connection: psycopg.Connection, filled: Filled, handled: int
):
    complete(connection)
    with pytest.raises(CountError, match=f"600 jobs were enqueued, {handled} handled"):
        rows.check(connection, filled, handled=handled, kept=True)


def test_a_job_that_was_not_recorded_is_refused(
    connection: psycopg.Connection, filled: Filled
):
    complete(connection, f"id > '{filled.tail}'")
    with pytest.raises(CountError, match="are left"):
        rows.check(connection, filled, handled=600, kept=True)


def test_a_row_that_stayed_is_refused_where_none_is_kept(
    connection: psycopg.Connection, filled: Filled
):
    complete(connection)
    with pytest.raises(CountError, match="0 recorded"):
        rows.check(connection, filled, handled=600, kept=False)


def test_the_tail_is_done_when_the_last_jobs_are(
    connection: psycopg.Connection, filled: Filled
):
    complete(connection, f"id < '{filled.tail}'")
    assert not rows.tail_is_done(connection, filled)
    assert rows.left(connection, filled) == 500
    complete(connection)
    assert rows.tail_is_done(connection, filled)
    assert rows.left(connection, filled) == 0
