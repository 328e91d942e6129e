from __future__ import annotations

import pytest

from acw.embedded import binaries, programs


def test_runs_the_wheels_program_and_returns_what_it_printed():
    finished = programs.run("pg_controldata", "--version", user=None)
    assert finished.returncode == 0
    assert f"{binaries.MAJOR}." in finished.stdout


def test_a_failure_is_the_callers_to_judge():
    finished = programs.run("pg_controldata", "/no/such", user=None)
    assert finished.returncode != 0
    assert "/no/such" in finished.stderr


def test_the_callers_libpq_variables_do_not_reach_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PGDATA", "/no/such")
    finished = programs.run("pg_controldata", user=None)
    assert "no data directory specified" in finished.stderr
