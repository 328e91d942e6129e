from __future__ import annotations

import sys
from pathlib import Path

import pytest
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from pytest_django import Settings

from jobs.checks import WORKER
from tests.workspaces.tasks import plugs
from workspaces.tasks.checks import check_sockets


def test_what_can_be_called_is_no_finding(settings: Settings):
    assert check_sockets() == []
    settings.TASKS_CONTEST_JUDGE = plugs.JUDGE
    settings.TASKS_ARBITER = plugs.ARBITER
    assert check_sockets() == []


def test_a_judge_that_cannot_be_imported_is_E001(settings: Settings):  # noqa: N802 (the check's id)
    settings.TASKS_CONTEST_JUDGE = "no.such.judge"
    (found,) = check_sockets()
    assert found.id == "tasks.E001"
    assert found.msg.startswith("TASKS_CONTEST_JUDGE=no.such.judge: it cannot be")
    assert "Set TASKS_CONTEST_JUDGE to the dotted path" in str(found.hint)


def test_an_arbiter_that_cannot_be_called_is_E002(settings: Settings):  # noqa: N802 (the check's id)
    settings.TASKS_ARBITER = f"{plugs.__name__}.ARBITER"
    (found,) = check_sockets()
    assert (found.id, "cannot be called" in found.msg) == ("tasks.E002", True)


@pytest.fixture
def plugged(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that holds the judge, and is not imported yet."""
    (tmp_path / "own_judge.py").write_text("def judge(*given): ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_judge", raising=False)
    settings.TASKS_CONTEST_JUDGE = "own_judge.judge"
    return "own_judge"


def test_ordinary_commands_do_not_import_it(plugged: str):
    checks.run_checks()
    assert plugged not in sys.modules


def test_a_worker_does_at_its_start(plugged: str, settings: Settings):
    settings.JOBS_ENABLED = False
    call_command("runjobs", skip_checks=False)
    assert plugged in sys.modules


def test_a_worker_whose_judge_is_missing_does_not_start(settings: Settings):
    settings.JOBS_ENABLED = False
    settings.TASKS_CONTEST_JUDGE = "no.such.judge"
    with pytest.raises(SystemCheckError, match=r"tasks\.E001"):
        call_command("runjobs", skip_checks=False)


def test_it_is_among_the_checks_of_a_deployment(settings: Settings):
    settings.TASKS_ARBITER = "no.such.arbiter"
    found = checks.run_checks(tags=[WORKER], include_deployment_checks=True)
    assert "tasks.E002" in {message.id for message in found}
