from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from acw.scratch.errors import ScratchError
from acw.scratch.schema import (
    Scratch,
    Use,
    check_rights,
    configured_server,
    drop_leftovers,
    lock,
    scratch_schema,
)

USE = Use(
    name="trial",
    prefix="acw_trial_",
    locks=0x54524941,
    settings="acw.benchmark.settings",
    directory_variable="BENCHMARK_DIRECTORY",
)
LEFT = "acw_trial_00000000000000aa"


class Trial(Scratch):
    use: ClassVar[Use] = USE


@pytest.fixture
def server() -> Iterator[psycopg.Connection]:
    """Where the schemas are made: which database that is depends on the tests that came before."""
    with psycopg.connect(**configured_server(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def unmigrated(monkeypatch: pytest.MonkeyPatch) -> None:
    """To make the tables takes seconds, and most tests here need none."""
    monkeypatch.setattr(Scratch, "migrate", lambda scratch: None)


def schemas(connection: psycopg.Connection) -> set[str]:
    found = connection.execute("SELECT nspname FROM pg_namespace").fetchall()
    return {name for (name,) in found}


@pytest.mark.usefixtures("unmigrated")
def test_it_is_dropped_with_its_directory_when_the_block_fails(
    server: psycopg.Connection,
):
    seen: list[Trial] = []

    def fail() -> None:
        with scratch_schema(Trial) as scratch, scratch.connect() as connection:
            connection.execute("CREATE TABLE something ()")
            assert scratch.schema in schemas(connection)
            seen.append(scratch)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    (scratch,) = seen
    assert not scratch.directory.exists()
    assert scratch.schema not in schemas(server)


@pytest.mark.usefixtures("unmigrated")
def test_it_is_dropped_when_the_server_has_ended_its_connection():
    with scratch_schema(Trial) as scratch, scratch.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s"
            " AND objid = hashtext(%s)::oid",
            [USE.locks, scratch.schema],
        )
    with scratch.connect() as connection:
        assert scratch.schema not in schemas(connection)


@pytest.mark.usefixtures("unmigrated")
def test_what_is_kept_outlives_the_block_and_is_nobodys_leftover(
    server: psycopg.Connection,
):
    with scratch_schema(Trial) as scratch:
        with scratch.connect() as connection:
            connection.execute("CREATE TABLE evidence AS SELECT 1 AS found")
        (scratch.directory / "log").write_text("said")
        scratch.keep()
    try:
        assert drop_leftovers(server, USE) == []
        assert scratch.schema.startswith("acw_trial_kept_")
        with scratch.connect() as connection:
            found = connection.execute("SELECT found FROM evidence").fetchone()
        assert found == (1,)
        assert (scratch.directory / "log").read_text() == "said"
    finally:
        server.execute(
            sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(scratch.schema))
        )
        for left in scratch.directory.iterdir():
            left.unlink()
        scratch.directory.rmdir()


@pytest.mark.usefixtures("unmigrated")
def test_it_can_be_made_on_another_server_than_the_configured_one(
    server: psycopg.Connection,
):
    server.execute("CREATE DATABASE trial_elsewhere")
    try:
        where = conninfo_to_dict(os.environ["DATABASE_URL"])
        where["dbname"] = "trial_elsewhere"
        with scratch_schema(Trial, server=where) as scratch:
            with scratch.connect() as connection:
                named = connection.execute(
                    "SELECT current_database(), current_schema()"
                )
                assert named.fetchone() == ("trial_elsewhere", scratch.schema)
            assert "trial_elsewhere" in scratch.env()["DATABASE_URL"]
    finally:
        server.execute("DROP DATABASE trial_elsewhere WITH (FORCE)")


def test_tables_that_cannot_be_made_are_told_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("acw.scratch.schema.MANAGE", tmp_path / "gone.py")
    scratch = Trial("acw_trial_ffffffffffffffff", tmp_path)
    with pytest.raises(ScratchError, match=r"could not be made.*gone\.py"):
        scratch.migrate()


def test_what_a_killed_run_left_is_dropped_and_a_live_run_is_not(
    server: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    directory = tmp_path / LEFT
    (directory / "data").mkdir(parents=True)
    server.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(LEFT)))
    with psycopg.connect(**configured_server(), autocommit=True) as alive:
        alive.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", lock(USE, LEFT))
        assert LEFT not in drop_leftovers(server, USE)
        assert LEFT in schemas(server)
        assert directory.exists()
    # The lock goes with its session, though not in the same moment.
    server.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", lock(USE, LEFT))
    server.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", lock(USE, LEFT))
    assert LEFT in drop_leftovers(server, USE)
    assert LEFT not in schemas(server)
    assert not directory.exists()


@pytest.mark.parametrize("name", ["acw_trial_mine", "acw_bench_00000000000000aa"])
def test_a_schema_with_another_name_is_nobodys_leftover(
    server: psycopg.Connection, name: str
):
    server.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    try:
        drop_leftovers(server, USE)
        assert name in schemas(server)
    finally:
        server.execute(sql.SQL("DROP SCHEMA {}").format(sql.Identifier(name)))


def test_a_role_that_may_not_make_schemas_is_told_what_it_lacks(
    server: psycopg.Connection,
):
    server.execute("CREATE ROLE trial_guest")
    try:
        server.execute("SET ROLE trial_guest")
        with pytest.raises(ScratchError, match=r"the trial works.*GRANT CREATE"):
            check_rights(server, USE)
    finally:
        server.execute("RESET ROLE")
        server.execute("DROP ROLE trial_guest")


def test_the_operators_settings_are_not_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NOTIFY_WEBHOOK_URL", "https://operator.example.com/hook")
    monkeypatch.setenv("NOTIFY_WEBHOOK_ENABLED", "true")
    monkeypatch.setenv("JOBS_WORKERS", "64")
    env = Trial(LEFT, tmp_path).env()
    assert "NOTIFY_WEBHOOK_URL" not in env
    assert "JOBS_WORKERS" not in env
    assert env["NOTIFY_WEBHOOK_ENABLED"] == "false"
    for name in ("ACW_DATA_DIR", "ACW_STATE_DIR"):
        assert tmp_path in Path(env[name]).parents


def test_the_runs_own_settings_come_on_top(tmp_path: Path):
    env = Trial(LEFT, tmp_path).env(application_name="me", JOBS_WORKERS="3")
    assert env["JOBS_WORKERS"] == "3"
    assert conninfo_to_dict(env["DATABASE_URL"])["application_name"] == "me"
