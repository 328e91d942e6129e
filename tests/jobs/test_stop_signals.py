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
