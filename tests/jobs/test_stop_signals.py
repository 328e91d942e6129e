from __future__ import annotations

import os
import signal

import pytest

from jobs.stop_signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_stops_and_the_second_ends_at_once(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(number)
    happened: list[object] = []
    monkeypatch.setattr(os, "_exit", happened.append)
    with StopSignals(lambda: happened.append("stop")):
        os.kill(os.getpid(), number)
        assert happened == ["stop"]
        os.kill(os.getpid(), number)
        assert happened[:2] == ["stop", 128 + number]
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(
    "numbers",
    [
        (signal.SIGHUP, signal.SIGHUP),
        (signal.SIGHUP, signal.SIGTERM),
        (signal.SIGTERM, signal.SIGHUP),
    ],
    ids=["of a terminal", "and its supervisor's", "along with SIGTERM"],
)
def test_a_hangup_stops_and_never_ends_at_once(
    numbers: tuple[signal.Signals, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[object] = []
    monkeypatch.setattr(os, "_exit", happened.append)
    with StopSignals(lambda: happened.append("stop")):
        for number in numbers:
            os.kill(os.getpid(), number)
    assert happened == ["stop", "stop"]


def test_an_interrupt_stops_also_what_a_script_has_started_in_the_background() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    happened: list[object] = []
    try:
        with StopSignals(lambda: happened.append("stop")):
            os.kill(os.getpid(), signal.SIGINT)
        assert happened == ["stop"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_hangup_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    happened: list[object] = []
    try:
        with StopSignals(lambda: happened.append("stop")):
            os.kill(os.getpid(), signal.SIGHUP)
        assert happened == []
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
