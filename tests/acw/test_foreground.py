"""With real processes and real signals."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from acw.foreground import Command, Foreground

PATIENT = "import signal; print('up', flush=True); signal.pause()"
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('up', flush=True); signal.pause()"
)
ORDERLY = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: (print("goodbye", flush=True), sys.exit(0)))
print("up", flush=True)
signal.pause()
"""


@pytest.fixture
def said() -> list[str]:
    return []


def python(name: str, code: str) -> Command:
    return Command(name=name, arguments=[sys.executable, "-c", code])


def is_up(capture: pytest.CaptureFixture[str], seen: list[str], *, count: int) -> bool:
    seen.append(capture.readouterr().out)
    return "".join(seen).count("| up\n") == count


def run(
    commands: list[Command],
    *,
    said: list[str],
    capture: pytest.CaptureFixture[str],
    grace: float = 30,
    signals: tuple[signal.Signals, ...] = (signal.SIGTERM,),
) -> tuple[int, str]:
    """Run until all print "up", send the signals; return the status and what came."""
    foreground = Foreground(say=said.append, grace=grace)
    seen: list[str] = []
    with foreground.heeding_signals():
        foreground.start(commands)
        assert foreground.wait_for(lambda: is_up(capture, seen, count=len(commands)))
        for number in signals:
            os.kill(os.getpid(), number)
        status = foreground.wait()
    seen.append(capture.readouterr().out)
    return status, "".join(seen)


def test_lines_come_with_their_commands_name(
    capfd: pytest.CaptureFixture[str], said: list[str]
):
    commands = [python("web", PATIENT), python("jobs", PATIENT)]
    _, output = run(commands, said=said, capture=capfd)
    assert sorted(output.splitlines()) == ["jobs | up", "web  | up"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_all_in_good_order(
    capfd: pytest.CaptureFixture[str], said: list[str], number: signal.Signals
):
    status, output = run(
        [python("web", PATIENT), python("jobs", ORDERLY)],
        said=said,
        capture=capfd,
        signals=(number,),
    )
    assert status == 0
    assert "jobs | goodbye\n" in output


def test_a_hangup_that_is_ignored_as_under_nohup_stays_so(said: list[str]):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        foreground = Foreground(say=said.append, grace=30)
        with foreground.heeding_signals():
            os.kill(os.getpid(), signal.SIGHUP)
        assert foreground.signals_taken == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_does_not_stop_within_the_grace_is_killed(
    capfd: pytest.CaptureFixture[str], said: list[str]
):
    status, _ = run([python("jobs", STUBBORN)], said=said, capture=capfd, grace=0.1)
    assert status == 0
    assert "jobs has not stopped: killing it" in said


def test_a_signal_that_comes_twice_at_once_is_one(
    capfd: pytest.CaptureFixture[str], said: list[str]
):
    _, output = run(
        [python("jobs", ORDERLY)],
        said=said,
        capture=capfd,
        signals=(signal.SIGTERM, signal.SIGINT),
    )
    assert "jobs | goodbye\n" in output
    assert not any("killing" in text for text in said)


def test_a_second_signal_stops_at_once(
    capfd: pytest.CaptureFixture[str], said: list[str]
):
    foreground = Foreground(say=said.append, grace=600)
    seen: list[str] = []
    with foreground.heeding_signals():
        foreground.start([python("jobs", STUBBORN)])
        assert foreground.wait_for(lambda: is_up(capfd, seen, count=1))
        os.kill(os.getpid(), signal.SIGTERM)
        again = threading.Timer(1.1, os.kill, (os.getpid(), signal.SIGTERM))
        again.start()
        assert foreground.wait() == 0
        again.join()
    assert "jobs has not stopped: killing it" in said


def test_the_end_of_one_ends_the_others(
    capfd: pytest.CaptureFixture[str], said: list[str]
):
    foreground = Foreground(say=said.append, grace=30)
    with foreground.heeding_signals():
        foreground.start(
            [python("web", "raise SystemExit(7)"), python("jobs", ORDERLY)]
        )
        assert foreground.wait() == 1
    assert said == ["web has ended, with status 7: stopping the rest"]


def test_waiting_for_a_condition_ends_with_the_command(said: list[str]):
    foreground = Foreground(say=said.append, grace=30)
    with foreground.heeding_signals():
        foreground.start([python("web", "raise SystemExit(7)")])
        assert not foreground.wait_for(lambda: False)
        assert foreground.wait() == 1


def test_the_signal_handlers_that_were_there_come_back(said: list[str]):
    before = signal.getsignal(signal.SIGTERM)
    with Foreground(say=said.append, grace=1).heeding_signals():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
