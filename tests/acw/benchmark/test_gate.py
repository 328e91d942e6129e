from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from acw.benchmark import gate


def test_all_threads_are_prepared_before_any_begins(monkeypatch: pytest.MonkeyPatch):
    events: list[str] = []

    def prepare() -> Callable[[], str]:
        events.append("prepared")

        def act() -> str:
            events.append("began")
            return threading.current_thread().name

        return act

    def wait() -> float:
        events.append("word")
        return 1.0

    monkeypatch.setattr(gate, "wait", wait)
    run = gate.run(prepare, 3)
    assert events == ["prepared"] * 3 + ["word"] + ["began"] * 3
    assert len(set(run.results)) == 3
    assert run.began == 1.0


def test_what_fails_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch):
    def prepare() -> Callable[[], None]:
        raise ZeroDivisionError

    monkeypatch.setattr(gate, "wait", lambda: 0.0)
    with pytest.raises(ZeroDivisionError):
        gate.run(prepare, 2)


def test_a_report_is_one_line(capsys: pytest.CaptureFixture[str]):
    gate.report({"jobs": 1})
    assert capsys.readouterr().out == '{"jobs": 1}\n'
