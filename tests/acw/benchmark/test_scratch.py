from __future__ import annotations

import psycopg

from acw.benchmark.scratch import Scratch


def test_it_has_the_products_tables_and_sees_no_others(
    scratch: Scratch, connection: psycopg.Connection
):
    found = connection.execute(
        "SELECT DISTINCT schemaname FROM pg_tables"
        " WHERE tablename = 'jobs' AND schemaname = ANY(current_schemas(false))"
    )
    assert found.fetchall() == [(scratch.schema,)]


def test_clear_leaves_nothing_of_the_measurement_before(
    scratch: Scratch, connection: psycopg.Connection
):
    connection.execute(
        "INSERT INTO jobs (id, type) VALUES (gen_random_uuid(), 'bench.noop')"
    )
    connection.execute(
        "INSERT INTO job_runners (name, interval) VALUES ('job_reaper', '1 day')"
    )
    (scratch.meters / "1.meter").touch()
    scratch.clear()
    counts = connection.execute(
        "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM job_runners)"
    )
    assert counts.fetchone() == (0, 0)
    assert list(scratch.meters.iterdir()) == []


def test_reset_leaves_nothing_but_the_empty_tables(
    scratch: Scratch, connection: psycopg.Connection
):
    connection.execute(
        "INSERT INTO workspaces (name, url, host, path) VALUES ('a', 'file:///a', 'here', '/a')"
    )
    migrations = connection.execute("SELECT count(*) FROM django_migrations").fetchone()
    (scratch.directory / "data").mkdir()
    scratch.reset()
    assert list(scratch.directory.iterdir()) == [scratch.meters]
    assert connection.execute("SELECT count(*) FROM workspaces").fetchone() == (0,)
    left = connection.execute("SELECT count(*) FROM django_migrations").fetchone()
    assert left == migrations
    assert left != (0,)


def test_settle_vacuums_and_analyzes(scratch: Scratch, connection: psycopg.Connection):
    connection.execute(
        "INSERT INTO jobs (id, type) SELECT gen_random_uuid(), 'bench.noop' FROM generate_series(1, 50)"
    )
    scratch.settle()
    known = connection.execute(
        "SELECT reltuples FROM pg_class WHERE oid = 'jobs'::regclass"
    )
    assert known.fetchone() == (50,)
