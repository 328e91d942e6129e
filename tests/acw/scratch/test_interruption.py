from __future__ import annotations

import os
import signal

import pytest

from acw.scratch.interruption import cleaning_up_on_signals


def test_the_first_signal_ends_the_block_and_the_next_does_not_disturb_the_tidying():
    before = signal.getsignal(signal.SIGTERM)
    tidied = []

    def work() -> None:
        with cleaning_up_on_signals():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)
                os.kill(os.getpid(), signal.SIGINT)
                tidied.append(True)

    with pytest.raises(SystemExit) as stopped:
        work()
    assert stopped.value.code == 128 + signal.SIGTERM
    assert tidied == [True]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_hangup_that_is_ignored_as_under_nohup_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with cleaning_up_on_signals():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
