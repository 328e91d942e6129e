from __future__ import annotations

import os
import signal

import pytest

from jobs.stop_signals import StopSignals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
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


def test_one_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    happened: list[object] = []
    try:
        with StopSignals(lambda: happened.append("stop")):
            os.kill(os.getpid(), signal.SIGHUP)
        assert happened == []
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
