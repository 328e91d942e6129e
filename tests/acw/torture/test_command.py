"""The command as an operator runs it: a process, against the tests' own server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from psycopg import sql

from acw.scratch.schema import configured_server
from acw.torture import command, preflight
from acw.torture.errors import TortureError
from acw.torture.invariants import INVARIANTS, Violation
from acw.torture.run import Result
from acw.torture.scratch import SCHEMA_PREFIX, Scratch
from jobs.management.commands import jobs
from jobs.testing import wait_until

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 120.0
BROKEN = Violation(
    name="lost",
    promise=INVARIANTS[0].promise,
    count=1,
    columns=("ref_id",),
    rows=[("7.1",)],
)


@pytest.fixture
def server() -> Iterator[psycopg.Connection]:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        yield connection


@pytest.fixture
def here() -> Iterator[psycopg.Connection]:
    """Where this process makes schemas: in another database, where tests before have set one up for themselves."""
    with psycopg.connect(**configured_server(), autocommit=True) as connection:
        yield connection


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "jobs", "torture", *arguments],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def schemas_of(server: psycopg.Connection) -> set[str]:
    found = server.execute(
        "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)",
        [SCHEMA_PREFIX],
    ).fetchall()
    return {name for (name,) in found}


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_it_prints_what_was_kept_and_leaves_nothing(server: psycopg.Connection):
    before = schemas_of(server)
    process = start(
        "--minutes", "0.02", "--jobs", "60", "--workers", "1", "--seed", "5"
    )
    output, progress = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output + progress
    assert "with the seed 5" in progress
    for invariant in INVARIANTS:
        assert f"kept  {invariant.promise}" in output
    for figure in ("executions", "pick-up p50", "pick-up p99", "fault: "):
        assert figure in output
    assert schemas_of(server) <= before


def test_a_signal_ends_it_with_its_schema_and_its_workers(server: psycopg.Connection):
    before = schemas_of(server)
    process = start("--minutes", "10", "--workers", "1")

    def workers() -> list[int]:
        for schema in schemas_of(server) - before:
            there = server.execute(
                "SELECT to_regclass(%s) IS NOT NULL", [f"{schema}.job_workers"]
            ).fetchone()
            if there and there[0]:
                found = server.execute(f"SELECT pid FROM {schema}.job_workers")
                return [pid for (pid,) in found.fetchall()]
        return []

    pids = wait_until(workers, "a worker", timeout=PATIENCE)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM
    assert schemas_of(server) <= before
    wait_until(lambda: all(map(gone, pids)), "its workers are gone", timeout=PATIENCE)


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tables, and without looking at the server."""
    monkeypatch.setattr(Scratch, "migrate", lambda scratch: None)
    monkeypatch.setattr(preflight, "check", lambda server, **plan: None)


def tidy(server: psycopg.Connection, kept: str) -> None:
    server.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(kept)))


@pytest.mark.usefixtures("quickly")
def test_a_broken_promise_is_an_error_and_the_evidence_is_kept(
    here: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    result = Result(figures={}, violations=[BROKEN])
    monkeypatch.setattr(command, "run", lambda scratch, plan, say: result)
    before = schemas_of(here)
    with pytest.raises(CommandError, match=r"1 promise.*seed 7.*evidence") as raised:
        call_command("jobs", "torture", "--seed", "7")
    (kept,) = schemas_of(here) - before
    directory = Path("/", *str(raised.value).partition(" /")[2].split("/"))
    try:
        assert kept in str(raised.value)
        assert directory.name == kept
        assert (directory / "logs").is_dir()
        assert raised.value.returncode == 1
        assert "7.1" in capsys.readouterr().out
    finally:
        tidy(here, kept)
        shutil.rmtree(directory)


@pytest.mark.usefixtures("quickly")
def test_what_comes_to_no_result_is_told_and_kept_as_well(
    here: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    def fail(scratch: Scratch, plan: object, say: object) -> Result:
        raise TortureError("the producer has ended")

    monkeypatch.setattr(command, "run", fail)
    before = schemas_of(here)
    with pytest.raises(CommandError, match="the producer has ended") as raised:
        call_command("jobs", "torture")
    (kept,) = schemas_of(here) - before
    try:
        assert kept in str(raised.value)
    finally:
        tidy(here, kept)
        shutil.rmtree(str(raised.value).rpartition("directory ")[2])


def test_what_the_server_lacks_is_one_line(
    here: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
):
    before = schemas_of(here)
    with pytest.raises(CommandError, match="room for"):
        call_command("jobs", "torture", "--workers", "16")
    assert schemas_of(here) <= before


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--minutes", "0"], "--minutes"),
        (["--minutes", "nan"], "--minutes"),
        (["--minutes", "soon"], "--minutes"),
        (["--jobs", "-1"], "--jobs"),
        (["--workers", "17"], "--workers"),
        (["--seed", "x"], "--seed"),
    ],
)
def test_bad_arguments_are_refused_by_name(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as ended:
        jobs.Command().run_from_argv(["manage.py", "jobs", "torture", *arguments])
    assert ended.value.code == 2
    assert f"argument {named}: " in capsys.readouterr().err
