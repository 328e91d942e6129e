from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from acw.embedded import locks
from acw.embedded.locks import UsersLock

HOLD_UNTIL_TOLD = """
import sys
from pathlib import Path
from acw.embedded.locks import UsersLock
lock = UsersLock(Path(sys.argv[1]))
lock.hold()
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "users.lock"


def test_only_the_last_user_is_told_so(path: Path):
    first, second = UsersLock(path), UsersLock(path)
    first.hold()
    second.hold()
    assert not first.release()
    assert second.release()
    assert not second.release()


def test_a_killed_process_holds_nothing(path: Path):
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD_UNTIL_TOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with other:
        assert other.stdout
        assert other.stdout.readline() == b"held\n"
        mine = UsersLock(path)
        mine.hold()
        assert not mine.release()
        other.kill()
        other.wait()
        mine.hold()
        assert mine.release()


def test_whoever_is_about_to_end_may_be_waited_for(path: Path):
    mine, ending = UsersLock(path), UsersLock(path)
    mine.hold()
    ending.hold()
    end = threading.Timer(0.1, ending.release)
    end.start()
    assert mine.release(patience=10)
    end.join()


FORK_AND_RELEASE_IN_THE_CHILD = """
import os, sys
from pathlib import Path
from acw.embedded.locks import UsersLock
lock = UsersLock(Path(sys.argv[1]))
lock.hold()
child = os.fork()
if child == 0:
    os._exit(1 if lock.held or lock.release() else 0)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
assert lock.held and lock.release()
"""


def test_a_fork_does_not_share_its_parents_share(path: Path):
    # Not in the tests' own process: others may have left threads, and Python warns.
    subprocess.run(
        [sys.executable, "-c", FORK_AND_RELEASE_IN_THE_CHILD, str(path)], check=True
    )


def test_two_never_start_or_stop_at_once(path: Path):
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        waiting.set()
        with locks.exclusive(path):
            order.append("second")

    thread = threading.Thread(target=second)
    with locks.exclusive(path):
        thread.start()
        assert waiting.wait(10)
        thread.join(0.05)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
