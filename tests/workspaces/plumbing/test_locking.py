from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jobs.testing import wait_until
from workspaces.exceptions import CloneMissing, GitStopped, RepositoryBusy
from workspaces.plumbing import locking

ROOT = Path(__file__).resolve().parents[3]
AT_ONCE = dt.timedelta(0)
LONG = dt.timedelta(minutes=1)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "lock"
    path.touch()
    return path


def test_one_at_a_time_has_it(lock: Path):
    with (
        locking.locked(lock, wait=AT_ONCE),
        pytest.raises(RepositoryBusy, match="being worked on"),
        locking.locked(lock, wait=AT_ONCE),
    ):
        pass


def test_it_is_free_again_after_the_block(lock: Path):
    for _ in range(2):
        with locking.locked(lock, wait=AT_ONCE):
            pass


def test_it_is_free_again_after_an_exception(lock: Path):
    with pytest.raises(ZeroDivisionError), locking.locked(lock, wait=AT_ONCE):
        raise ZeroDivisionError
    with locking.locked(lock, wait=AT_ONCE):
        pass


def test_who_waits_gets_it(lock: Path):
    got = threading.Event()

    def wait() -> None:
        with locking.locked(lock, wait=LONG):
            got.set()

    thread = threading.Thread(target=wait)
    with locking.locked(lock, wait=AT_ONCE):
        thread.start()
    thread.join()
    assert got.is_set()


def test_who_waits_can_be_stopped(lock: Path):
    with (
        locking.locked(lock, wait=AT_ONCE),
        pytest.raises(GitStopped),
        locking.locked(lock, wait=LONG, stop=lambda: True),
    ):
        pass


def test_it_is_gone_with_the_process_that_had_it(lock: Path):
    code = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX);"
        "print('mine', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"mine\n"
        with pytest.raises(RepositoryBusy), locking.locked(lock, wait=AT_ONCE):
            pass
        process.kill()
        process.wait()
    with locking.locked(lock, wait=AT_ONCE):
        pass


def test_no_child_keeps_it(lock: Path):
    with locking.locked(lock, wait=AT_ONCE):
        child = subprocess.Popen(["sleep", "1000"], close_fds=False)
    try:
        with locking.locked(lock, wait=AT_ONCE):
            pass
    finally:
        child.kill()
        child.wait()


def test_a_child_that_was_forked_does_not_keep_it(lock: Path):
    """As one of a handler's own does, which outlives a worker that is killed."""
    code = """
import datetime, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from workspaces.plumbing import locking
with locking.locked(Path(sys.argv[1]), wait=datetime.timedelta(0)):
    if not os.fork():
        print(os.getpid(), flush=True)
    signal.pause()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(lock), str(ROOT)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        # Told by the child: from here on it has run what a child runs first.
        child = int(process.stdout.readline())
        process.kill()
        process.wait()
        try:
            with locking.locked(lock, wait=AT_ONCE):
                os.kill(child, 0)  # it lives
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_child_that_ends_does_not_let_go_of_it(lock: Path):
    with locking.locked(lock, wait=AT_ONCE):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(RepositoryBusy), locking.locked(lock, wait=AT_ONCE):
            pass


def test_a_lock_file_can_be_made_and_is_had_by_one(tmp_path: Path):
    taken = locking.try_lock(tmp_path / "new")
    assert taken is not None
    assert locking.try_lock(tmp_path / "new") is None
    locking.close(taken)
    again = locking.try_lock(tmp_path / "new")
    assert again is not None
    locking.close(again)


def test_without_the_file_there_is_no_clone(tmp_path: Path):
    with (
        pytest.raises(CloneMissing, match="there is no clone at"),
        locking.locked(tmp_path / "lock", wait=AT_ONCE),
    ):
        pass


def test_a_link_in_its_place_is_refused(tmp_path: Path, lock: Path):
    (tmp_path / "link").symlink_to(lock)
    with (
        pytest.raises(CloneMissing),
        locking.locked(tmp_path / "link", wait=AT_ONCE),
    ):
        pass


@pytest.mark.parametrize("replaced", [True, False])
def test_who_waited_while_the_workspace_was_removed_is_told(
    lock: Path, replaced: bool, monkeypatch: pytest.MonkeyPatch
):
    waiting = threading.Event()
    raised: list[Exception] = []

    def stop() -> bool:
        waiting.set()
        return False

    def wait() -> None:
        try:
            with locking.locked(lock, wait=LONG, stop=stop):
                pass
        except CloneMissing as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    with locking.locked(lock, wait=AT_ONCE):
        thread.start()
        wait_until(waiting.is_set)
        lock.unlink()
        if replaced:
            lock.touch()
    thread.join()
    assert len(raised) == 1
