from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, transaction
from django.test import override_settings

from jobs import registry
from jobs.models import RunnerState
from jobs.registry import runner
from tests.jobs.auditing import recorded_audit
from tests.jobs.factories import RunnerStateFactory, ago


def called(*arguments: str) -> str:
    stdout = io.StringIO()
    call_command("runners", *arguments, stdout=stdout)
    return stdout.getvalue()


@pytest.fixture
def only_reaper() -> None:
    reaper = registry.runners()["job_reaper"]
    registry._runners.clear()
    registry._runners["job_reaper"] = reaper


@pytest.mark.django_db
@pytest.mark.usefixtures("only_reaper")
class TestList:
    def test_the_schedule(self):
        start = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
        RunnerStateFactory(
            next_run_at=dt.datetime(2100, 1, 1, tzinfo=dt.UTC),
            last_started_at=start,
            last_finished_at=start + dt.timedelta(seconds=2),
            last_outcome="completed",
            last_summary={"returned": 1, "dead": 0},
        )
        headers, row = called("list").splitlines()
        assert headers.split() == [
            "NAME",
            "ENABLED",
            "EVERY",
            "NEXT",
            "LAST",
            "OUTCOME",
            "TOOK",
            "SUMMARY",
        ]
        assert row.startswith("job_reaper  yes      1m     2100-01-01 00:00:00 UTC")
        assert "2026-01-02 03:04:05 UTC  completed  2s    0 dead, 1 returned" in row

    def test_one_that_never_ran(self):
        row = called("list").splitlines()[1]
        assert "never" in row

    def test_one_that_is_overdue(self):
        RunnerStateFactory(next_run_at=ago(hours=2))
        assert "overdue by 2h" in called("list")

    def test_one_that_failed(self):
        RunnerStateFactory(last_outcome="failed", last_error="OSError: full\nmore")
        assert called("list").splitlines()[1].endswith("OSError: full")

    def test_as_json(self):
        RunnerStateFactory(next_run_at=ago(hours=2))
        (row,) = json.loads(called("list", "--json"))
        assert (row["name"], row["interval"], row["overdue"]) == (
            "job_reaper",
            60.0,
            True,
        )


settings = override_settings(
    JOBS_TEST_TWIN_ENABLED=False, JOBS_TEST_TWIN_INTERVAL=dt.timedelta(hours=1)
)


@pytest.mark.django_db(transaction=True)
@settings
def test_run_runs_one_tick_and_prints_its_summary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOGNAME", "carol")
    runner("test_twin")(lambda stop: {"returned": 3, "dead": 0})
    with recorded_audit() as told:
        assert called("run", "test_twin") == "test_twin: 3 returned, 0 dead\n"
    (audit,) = told
    assert audit["actor"] == "command line (carol)"
    assert (audit["action"], audit["target"]) == ("runner.run_now", "runner:test_twin")


@pytest.mark.django_db(transaction=True)
@settings
def test_a_tick_that_fails_is_exit_status_1():
    def tick(stop: Any) -> dict[str, int]:
        raise OSError("full")

    runner("test_twin")(tick)
    with pytest.raises(CommandError) as raised:
        called("run", "test_twin")
    assert str(raised.value) == "test_twin failed: OSError: full"
    assert raised.value.returncode == 1


@pytest.mark.usefixtures("only_reaper")
def test_a_name_that_nobody_knows_is_exit_status_1():
    with pytest.raises(
        CommandError, match="there is no runner 'x'; there are: job_reaper"
    ):
        called("run", "x")


@pytest.mark.parametrize("in_transaction", [False, True], ids=["alone", "within one"])
@pytest.mark.django_db(transaction=True)
def test_a_dry_run_prints_what_would_be_done_and_can_write_nothing(
    in_transaction: bool,
):
    def lines() -> Iterator[str]:
        yield "one would be sent"
        with pytest.raises(DatabaseError, match="read-only"), transaction.atomic():
            RunnerStateFactory(name="job_reaper")
        yield "another, too"

    def tick(stop: Any) -> dict[str, int]:
        raise AssertionError

    runner("test_twin", dry_run=lines)(tick)
    with (
        recorded_audit() as told,
        transaction.atomic() if in_transaction else nullcontext(),
    ):
        said = called("run", "test_twin", "--dry-run")
        assert said == "one would be sent\nanother, too\n"
        RunnerStateFactory(name="job_reaper")  # what comes after may write
    assert told == []
    assert RunnerState.objects.count() == 1


@pytest.mark.usefixtures("only_reaper")
def test_a_runner_without_a_dry_run_is_exit_status_2():
    with pytest.raises(CommandError) as raised:
        called("run", "job_reaper", "--dry-run")
    assert str(raised.value) == (
        "job_reaper cannot say what it would do; these can: none"
    )
    assert raised.value.returncode == 2
