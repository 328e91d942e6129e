from __future__ import annotations

import pytest
from django.core import checks
from django.db import DEFAULT_DB_ALIAS, connections

from acw.checks import check_unknown_variables


def test_w001_names_the_variable_and_the_one_that_was_meant(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("JOBS_WORKER", "4")
    [warning] = check_unknown_variables()
    assert warning.id == "acw.W001"
    assert "JOBS_WORKER " in warning.msg
    assert warning.hint == "Did you mean JOBS_WORKERS?"


def test_w001_says_to_remove_what_resembles_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ACW_QQQQQQQQQQ", "4")
    [warning] = check_unknown_variables()
    assert warning.hint == "Remove it."


def test_the_known_variables_are_no_slips(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("JOBS_WORKERS", "4")
    assert check_unknown_variables() == []


def test_the_system_checks_ask_no_server():
    """An image is built and checked where there is none. Here a question would fail: the test has no mark of the database."""
    used = connections[DEFAULT_DB_ALIAS]
    # What the other has heard of its server is not known to a copy.
    connections[DEFAULT_DB_ALIAS] = used.copy()
    try:
        assert checks.run_checks() == []
    finally:
        connections[DEFAULT_DB_ALIAS] = used
