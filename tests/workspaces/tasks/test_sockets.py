from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pytest_django import Settings

from jobs.exceptions import Cancelled, LeaseLost
from tests.workspaces.tasks import plugs
from workspaces.tasks import sockets
from workspaces.tasks.sockets import SocketError


def test_nothing_is_plugged_in_by_default():
    assert [sockets.plugged(setting) for setting in sockets.SOCKETS] == [None, None]


def test_what_is_plugged_in_is_found(settings: Settings):
    settings.TASKS_CONTEST_JUDGE = plugs.JUDGE
    settings.TASKS_ARBITER = plugs.ARBITER
    assert sockets.plugged(sockets.CONTEST_JUDGE) is plugs.judge
    assert sockets.plugged(sockets.ARBITER) is plugs.arbiter


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("judge", "cannot be imported: ImportError"),
        ("no.such.module.judge", "cannot be imported: ModuleNotFoundError"),
        (f"{plugs.__name__}.jugde", "cannot be imported: ImportError"),
        (f"{plugs.__name__}.JUDGE", "it is str, which cannot be called"),
        (f"{plugs.__name__}.coroutine", "it is a coroutine function"),
    ],
)
def test_what_cannot_be_called_is_refused_by_its_setting(
    settings: Settings, path: str, says: str
):
    settings.TASKS_CONTEST_JUDGE = path
    with pytest.raises(SocketError, match=f"TASKS_CONTEST_JUDGE={path}: .*{says}"):
        sockets.plugged(sockets.CONTEST_JUDGE)


def test_a_module_that_fails_is_named_with_its_error(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "failing_judge.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    settings.TASKS_CONTEST_JUDGE = "failing_judge.judge"
    with pytest.raises(SocketError, match="ZeroDivisionError: division by zero"):
        sockets.plugged(sockets.CONTEST_JUDGE)
    assert "failing_judge" not in sys.modules


def test_an_answer_in_time_is_wanted():
    sockets.check_wanted(sockets.ARBITER, plugs.context())
    sockets.check_wanted(sockets.ARBITER, None)


def test_an_answer_after_the_timeout_is_not():
    with pytest.raises(
        SocketError, match=r"TASKS_ARBITER: .* more than 10m \(TASKS_JUDGE_TIMEOUT\)"
    ):
        sockets.check_wanted(sockets.ARBITER, plugs.context(late=True))


def test_nor_is_one_for_a_lease_that_has_passed_on():
    context = plugs.context()
    context.notify_lease_lost()
    with pytest.raises(LeaseLost):
        sockets.check_wanted(sockets.ARBITER, context)


def test_nor_is_one_that_an_operator_has_cancelled():
    context = plugs.context()
    context.notify_cancel()
    with pytest.raises(Cancelled):
        sockets.check_wanted(sockets.ARBITER, context)


def test_a_shutdown_throws_no_answer_away():
    context = plugs.context()
    context.notify_stop()
    sockets.check_wanted(sockets.ARBITER, context)
