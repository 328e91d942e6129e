"""Each case is a process of its own, since each ends one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60

HANGING = "threading.Thread(target=threading.Event().wait, daemon={daemon}).start()"
PROGRAM = """
import atexit, threading
from jobs import leaving
leaving.THREADS_END_WITHIN = {within}
leaving.CALLBACKS_END_WITHIN = {within}
atexit.register(lambda: print("in order", flush=True))
{code}
leaving.leave(3)
"""


def run(code: str, *, within: float) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(code=code, within=within)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_what_is_registered_for_the_exit_is_done_beside_a_daemon_that_hangs() -> None:
    code = HANGING.format(daemon=True)
    assert run(code, within=PATIENCE) == (3, "in order\n")


def test_a_thread_of_a_handlers_own_that_hangs_is_not_waited_for_for_ever() -> None:
    code = HANGING.format(daemon=False)
    assert run(code, within=0.1) == (3, "")


def test_what_is_registered_for_the_exit_may_hang_as_well() -> None:
    code = "atexit.register(threading.Event().wait)"
    assert run(code, within=0.1) == (3, "")
