from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from jobs.connection import QueueConnection
from jobs.riding import AFTER, Riding, Write

FREE = Write(
    sql="""UPDATE riding_places SET place = NULL
FROM json_to_recordset(%(riding)s::json) AS ended (id int) WHERE riding_places.id = ended.id
RETURNING riding_places.id"""
)
BREAK = Write(
    sql="UPDATE riding_places SET place = 1 / (json_array_length(%(riding)s::json) - 1) RETURNING id"
)
TAKE = f"""
WITH taken AS (
    INSERT INTO riding_places SELECT %(id)s, 1 WHERE true {AFTER} ON CONFLICT (place) DO NOTHING RETURNING id
) SELECT id FROM taken
"""
TAKEN = "SELECT id, place FROM riding_places ORDER BY id"


@pytest.fixture
def own(transactional_db: None) -> Iterator[QueueConnection]:
    with QueueConnection() as connection:
        connection.execute(
            "CREATE TABLE riding_places (id int PRIMARY KEY, place int UNIQUE)", {}
        )
        connection.execute("INSERT INTO riding_places VALUES (1, 1)", {})
        try:
            yield connection
        finally:
            connection.execute("DROP TABLE riding_places", {})


def test_a_write_that_waits_is_one_statement_with_the_next_and_comes_first(
    own: QueueConnection,
):
    own.ride_along(FREE, {"id": 1})
    assert own.execute(TAKE, {"id": 2}) == [(2,)]
    assert own.execute(TAKEN, {}) == [(1, None), (2, 1)]
    ((transactions,),) = own.execute(
        "SELECT count(DISTINCT xmin::text) FROM riding_places", {}
    )
    assert transactions == 1


def test_it_is_written_before_a_statement_that_it_cannot_be_one_with(
    own: QueueConnection,
):
    own.ride_along(FREE, {"id": 1})
    assert own.execute(TAKEN, {}) == [(1, None)]


def test_it_can_be_written_at_once(own: QueueConnection):
    own.ride_along(FREE, {"id": 1})
    own.write_waiting()
    with QueueConnection() as other:
        assert other.execute(TAKEN, {}) == [(1, None)]


def test_where_the_statement_is_refused_what_waits_is_written_all_the_same(
    own: QueueConnection,
):
    own.ride_along(FREE, {"id": 1})
    with pytest.raises(psycopg.errors.DivisionByZero):
        own.execute("WITH one AS (SELECT 1 / %(by)s) SELECT * FROM one", {"by": 0})
    assert own.execute(TAKEN, {}) == [(1, None)]


def test_what_the_server_refuses_is_told_and_given_up_and_the_statement_runs(
    own: QueueConnection, caplog: pytest.LogCaptureFixture
):
    own.ride_along(BREAK, {"id": 1})
    assert own.execute("WITH one AS (SELECT 7) SELECT * FROM one", {}) == [(7,)]
    assert "job.finish_failed" in caplog.text
    assert own.execute(TAKEN, {}) == [(1, 1)]


def test_what_waits_while_the_database_is_away_waits_on(own: QueueConnection):
    own.ride_along(FREE, {"id": 1})
    with QueueConnection() as other:
        pid = own.raw().info.backend_pid
        other.execute("SELECT pg_terminate_backend(%(pid)s, 5000)", {"pid": pid})
    with pytest.raises(psycopg.OperationalError):
        own.execute(TAKE, {"id": 2})
    assert own.execute(TAKE, {"id": 2}) == [(2,)]
    assert own.execute(TAKEN, {}) == [(1, None), (2, 1)]


def test_one_of_another_kind_does_not_wait_with_it(own: QueueConnection):
    own.ride_along(FREE, {"id": 1})
    own.ride_along(Write(sql=FREE.sql), {"id": 3})
    with QueueConnection() as other:
        assert other.execute(TAKEN, {}) == [(1, None)]


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        pytest.param("SELECT 1", {}, id="no-with"),
        pytest.param("WITH RECURSIVE a AS (SELECT 1) SELECT 1", {}, id="recursive"),
        pytest.param("WITH a AS (SELECT 1) SELECT 1", [], id="by-position"),
    ],
)
def test_what_cannot_be_one_statement_is_left_apart(query: str, parameters: Any):
    riding = Riding()
    riding.add(FREE, {"id": 1})
    assert riding.together(query, parameters) is None


def test_all_that_waits_goes_together():
    riding = Riding()
    riding.add(FREE, {"id": 1})
    riding.add(FREE, {"id": 2})
    _, parameters = riding.alone()
    assert json.loads(parameters["riding"]) == [{"id": 1}, {"id": 2}]
    riding.clear()
    assert not riding
