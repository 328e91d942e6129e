from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workspaces.witness import Lifeline
from workspaces.plumbing import supervision
from workspaces.plumbing.supervision import Captured, Ending, supervise


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "TERM_GRACE", 0.3)


def watch(
    script: str,
    *,
    timeout: float = 60,
    stop: Callable[[], bool] | None = None,
    most: int = supervision.STDOUT_MOST,
) -> Captured:
    process = subprocess.Popen(
        ["/bin/sh", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout
    assert process.stderr
    with process.stdout, process.stderr:
        try:
            return supervise(
                group=process.pid,
                stdout=process.stdout.fileno(),
                stderr=process.stderr.fileno(),
                exited=lambda: exited(process),
                timeout=timeout,
                stop=stop,
                most=most,
            )
        finally:
            process.wait()


def exited(process: subprocess.Popen[bytes]) -> bool:
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def test_both_streams_are_kept():
    captured = watch("echo out; echo err >&2")
    assert captured == Captured(ending=Ending.EXITED, stdout=b"out\n", stderr=b"err\n")


def test_more_than_a_pipe_holds_is_read():
    captured = watch("head -c 1000000 /dev/zero")
    assert len(captured.stdout) == 1_000_000


def test_one_that_closes_its_pipes_is_waited_for(tmp_path: Path):
    done = tmp_path / "done"
    captured = watch(f"exec >&- 2>&-; (read x; true) </dev/null; touch {done}")
    assert captured.ending is Ending.EXITED
    assert done.exists()


def test_too_much_output_ends_it():
    captured = watch("cat /dev/zero", most=100_000)
    assert captured.ending is Ending.OVERFLOW
    assert len(captured.stdout) == 100_000


def test_as_much_as_is_allowed_is_no_overflow():
    assert watch("head -c 1000 /dev/zero", most=1000).ending is Ending.EXITED


def test_of_a_huge_stderr_the_beginning_and_the_end_are_kept():
    captured = watch("echo first >&2; head -c 5000000 /dev/zero >&2; echo last >&2")
    assert captured.stderr.startswith(b"first\n")
    assert captured.stderr.endswith(b"last\n")
    assert b"bytes left out" in captured.stderr
    most = supervision.STDERR_HEAD + supervision.STDERR_TAIL + 100
    assert len(captured.stderr) < most


def test_the_deadline_ends_the_whole_group(lifeline: Lifeline):
    captured = watch(
        f"exec 9>{lifeline.path}; echo here >&9; sleep 1000 & sleep 1000", timeout=0.3
    )
    assert captured.ending is Ending.TIMEOUT
    assert lifeline.was_held_and_let_go()


def test_a_group_that_ignores_sigterm_is_killed(lifeline: Lifeline):
    captured = watch(
        f"exec 9>{lifeline.path}; echo here >&9; trap '' TERM; "
        "(trap '' TERM; while :; do sleep 1; done) & while :; do sleep 1; done",
        timeout=0.3,
    )
    assert captured.ending is Ending.TIMEOUT
    assert lifeline.was_held_and_let_go()


def test_who_answers_sigterm_may_clean_up(tmp_path: Path):
    lock = tmp_path / "lock"
    lock.touch()
    ready = tmp_path / "ready"
    watch(
        f"trap 'rm {lock}; exit 1' TERM; touch {ready}; while :; do sleep 0.01; done",
        stop=ready.exists,
    )
    assert not lock.exists()


def test_what_the_leader_leaves_behind_is_killed(lifeline: Lifeline):
    captured = watch(f"exec 9>{lifeline.path}; echo here >&9; sleep 1000 & echo bye")
    assert captured.ending is Ending.EXITED
    assert captured.stdout == b"bye\n"
    assert lifeline.was_held_and_let_go()


def test_a_pipe_held_open_from_outside_the_group_is_not_waited_for(tmp_path: Path):
    go = tmp_path / "go"
    script = f"setsid sh -c 'while [ ! -e {go} ]; do sleep 0.1; done' & echo bye"
    try:
        captured = watch(script)
    finally:
        go.touch()
    assert captured == Captured(ending=Ending.EXITED, stdout=b"bye\n", stderr=b"")


def test_it_ends_when_the_caller_stops(lifeline: Lifeline):
    captured = watch(
        f"exec 9>{lifeline.path}; echo here >&9; sleep 1000", stop=lambda: True
    )
    assert captured.ending is Ending.STOPPED


def test_an_exception_ends_the_group(lifeline: Lifeline):
    calls = iter([False])

    def stop() -> bool:
        return next(calls)

    with pytest.raises(StopIteration):
        watch(f"exec 9>{lifeline.path}; echo here >&9; sleep 1000", stop=stop)
    assert lifeline.was_held_and_let_go()
