"""The command as an operator runs it: a process, against the tests' own server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command

from acw.benchmark.errors import CountError
from acw.benchmark.figures import Figure
from acw.benchmark.measurements import Extent
from acw.benchmark.scratch import SCHEMA_PREFIX, Scratch
from acw.management.commands import benchjobs
from jobs.testing import wait_until

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0


@pytest.fixture
def server() -> Iterator[psycopg.Connection]:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        yield connection


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "benchjobs", *arguments],
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


def test_it_prints_the_figures_and_leaves_nothing(server: psycopg.Connection):
    before = schemas_of(server)
    process = start("--short", "--only", "bulk", "--json")
    output, progress = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, progress
    assert progress.splitlines() == ["[1/1] bulk"]
    printed = json.loads(output)
    (figure,) = printed["figures"]
    assert figure["ratio"] > 0
    assert printed["conditions"]["PostgreSQL"]
    assert schemas_of(server) <= before


def test_a_signal_ends_it_with_its_schema_and_its_workers(server: psycopg.Connection):
    before = schemas_of(server)
    process = start("--only", "mixed")

    def worker() -> list[tuple[int]]:
        for schema in schemas_of(server) - before:
            there = server.execute(
                "SELECT to_regclass(%s) IS NOT NULL", [f"{schema}.job_workers"]
            ).fetchone()
            if there and there[0]:
                return server.execute(
                    f"SELECT pid FROM {schema}.job_workers"
                ).fetchall()
        return []

    ((pid,),) = wait_until(worker, "a worker", timeout=PATIENCE)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGTERM
    assert not Path(f"/proc/{pid}").exists()
    assert schemas_of(server) <= before


def test_lost_jobs_are_told_and_the_other_figures_come_all_the_same(
    scratch: Scratch,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    def lose(scratch: Scratch, extent: Extent) -> list[Figure]:
        raise CountError("3 jobs are lost: no figure")

    def measure(scratch: Scratch, extent: Extent) -> list[Figure]:
        assert extent == Extent(rounds=1, rows=5, short=True)
        return [Figure(name="it", value=1, unit="s", ceiling=None)]

    monkeypatch.setattr(benchjobs, "scratch_schema", lambda: nullcontext(scratch))
    monkeypatch.setattr(benchjobs, "MEASUREMENTS", {"drain": lose, "bulk": measure})
    with pytest.raises(CommandError, match="no figure for drain") as refused:
        call_command("benchjobs", "--short", "--rows=5", "--only=drain,bulk", "--json")
    assert refused.value.returncode == 1
    printed, progress = capsys.readouterr()
    assert json.loads(printed)["refused"] == {"drain": "3 jobs are lost: no figure"}
    assert [figure["name"] for figure in json.loads(printed)["figures"]] == ["it"]
    assert "REFUSED drain: 3 jobs are lost" in progress


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--only=bulk,speed"], "there is no measurement 'speed'; there are enqueue,"),
        (["--only=,"], "there is no measurement in it"),
        (["--rounds=0"], "must be a whole number from 1 on, got '0'"),
        (["--rows=many"], "must be a whole number from 1 on, got 'many'"),
    ],
)
def test_a_wrong_call_is_refused(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
):
    parser = benchjobs.Command().create_parser("manage.py", "benchjobs")
    # As from a command line; call_command() has it raise instead.
    parser.called_from_command_line = True
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(arguments)
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err
