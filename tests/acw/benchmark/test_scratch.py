from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from acw.benchmark.errors import BenchmarkError
from acw.benchmark.scratch import (
    Scratch,
    check_rights,
    drop_leftovers,
    lock,
    scratch_schema,
)

LEFT = "acw_bench_00000000000000aa"


@pytest.fixture
def server() -> Iterator[psycopg.Connection]:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        yield connection


def schemas(connection: psycopg.Connection) -> set[str]:
    found = connection.execute("SELECT nspname FROM pg_namespace").fetchall()
    return {name for (name,) in found}


def test_it_has_the_products_tables_and_sees_no_others(
    scratch: Scratch, connection: psycopg.Connection
):
    found = connection.execute(
        "SELECT DISTINCT schemaname FROM pg_tables"
        " WHERE tablename = 'jobs' AND schemaname = ANY(current_schemas(false))"
    )
    assert found.fetchall() == [(scratch.schema,)]


def test_it_is_dropped_with_its_directory_when_a_measurement_fails(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(Scratch, "migrate", lambda scratch: None)
    seen: list[Scratch] = []

    def measure() -> None:
        with scratch_schema() as scratch, scratch.connect() as connection:
            connection.execute("CREATE TABLE something ()")
            assert scratch.schema in schemas(connection)
            seen.append(scratch)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure()
    (scratch,) = seen
    assert not scratch.directory.exists()
    with scratch.connect() as connection:
        assert scratch.schema not in schemas(connection)


def test_it_is_dropped_when_the_server_has_ended_its_connection(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(Scratch, "migrate", lambda scratch: None)
    with scratch_schema() as scratch, scratch.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s"
            " AND objid = hashtext(%s)::oid",
            [lock(scratch.schema)[0], scratch.schema],
        )
    with scratch.connect() as connection:
        assert scratch.schema not in schemas(connection)


def test_tables_that_cannot_be_made_are_told_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("acw.benchmark.scratch.MANAGE", tmp_path / "gone.py")
    scratch = Scratch("acw_bench_ffffffffffffffff", tmp_path)
    with pytest.raises(BenchmarkError, match=r"could not be made.*gone\.py"):
        scratch.migrate()


def test_what_a_killed_run_left_is_dropped_and_a_live_run_is_not(
    server: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    directory = tmp_path / LEFT
    (directory / "data").mkdir(parents=True)
    server.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(LEFT)))
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as alive:
        alive.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", lock(LEFT))
        assert LEFT not in drop_leftovers(server)
        assert LEFT in schemas(server)
        assert directory.exists()
    # The lock goes with its session, though not in the same moment.
    server.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", lock(LEFT))
    server.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", lock(LEFT))
    assert LEFT in drop_leftovers(server)
    assert LEFT not in schemas(server)
    assert not directory.exists()


def test_a_schema_with_another_name_is_nobodys_leftover(server: psycopg.Connection):
    name = "acw_bench_mine"
    server.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    try:
        drop_leftovers(server)
        assert name in schemas(server)
    finally:
        server.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(name)))


def test_a_role_that_may_not_make_schemas_is_told_what_it_lacks(
    server: psycopg.Connection,
):
    server.execute("CREATE ROLE bench_guest")
    try:
        server.execute("SET ROLE bench_guest")
        with pytest.raises(BenchmarkError, match="GRANT CREATE ON DATABASE"):
            check_rights(server)
    finally:
        server.execute("RESET ROLE")
        server.execute("DROP ROLE bench_guest")


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


def test_the_operators_settings_are_not_taken_over(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NOTIFY_WEBHOOK_URL", "https://operator.example.com/hook")
    monkeypatch.setenv("NOTIFY_WEBHOOK_ENABLED", "true")
    monkeypatch.setenv("JOBS_WORKERS", "64")
    env = scratch.env()
    assert "NOTIFY_WEBHOOK_URL" not in env
    assert "JOBS_WORKERS" not in env
    assert env["NOTIFY_WEBHOOK_ENABLED"] == "false"
    for name in ("ACW_DATA_DIR", "ACW_STATE_DIR"):
        assert scratch.directory in Path(env[name]).parents


def test_settings_of_a_measurement_come_on_top(scratch: Scratch):
    assert scratch.env(JOBS_WORKERS="3")["JOBS_WORKERS"] == "3"
