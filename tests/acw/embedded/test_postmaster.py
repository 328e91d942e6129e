from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from acw.embedded import postmaster
from acw.embedded.postmaster import Postmaster

NO_PROCESS = 2**22 + 1  # above what any system gives out


def write_pid_file(directory: Path, *, pid: int, status: str = "ready   ") -> Path:
    path = directory / "postmaster.pid"
    lines = [pid, directory, 1, 5432, directory, "", "  1  2", status]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_reads_what_the_server_wrote(tmp_path: Path):
    write_pid_file(tmp_path, pid=7)
    assert postmaster.read(tmp_path) == Postmaster(7, tmp_path, "ready")


@pytest.mark.parametrize("content", [None, "", "7\n/x\n", "x\n" * 8])
def test_no_file_or_half_a_file_is_no_server(tmp_path: Path, content: str | None):
    if content is not None:
        (tmp_path / "postmaster.pid").write_text(content)
    assert postmaster.read(tmp_path) is None


@pytest.mark.parametrize(
    ("status", "accepts"), [("ready", True), ("starting", False), ("stopping", False)]
)
def test_accepts_when_ready_and_listening(tmp_path: Path, status: str, accepts: bool):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / postmaster.SOCKET_NAME))
        listener.listen()
        assert Postmaster(7, tmp_path, status).accepts is accepts


def test_a_dead_servers_file_accepts_nothing(tmp_path: Path):
    assert not Postmaster(7, tmp_path, "ready").accepts


def test_a_pid_that_is_now_another_programs_is_disowned(tmp_path: Path):
    path = write_pid_file(tmp_path, pid=os.getpid())
    lock = tmp_path / f"{postmaster.SOCKET_NAME}.lock"
    lock.touch()
    before = path.read_text().splitlines()
    postmaster.disown_stale_file(tmp_path)
    after = path.read_text().splitlines()
    with pytest.raises(ProcessLookupError):
        os.kill(int(after[0]), 0)
    assert after[1:] == before[1:]
    assert not lock.exists()


def test_a_zombies_pid_is_disowned(tmp_path: Path):
    with subprocess.Popen(["true"]) as child:
        # Dead, and not yet buried.
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        write_pid_file(tmp_path, pid=child.pid)
        postmaster.disown_stale_file(tmp_path)
        server = postmaster.read(tmp_path)
    assert server is not None
    assert server.pid != child.pid


def test_a_pid_without_a_process_is_left_to_postgresql(tmp_path: Path):
    path = write_pid_file(tmp_path, pid=NO_PROCESS)
    before = path.read_text()
    postmaster.disown_stale_file(tmp_path)
    assert path.read_text() == before
