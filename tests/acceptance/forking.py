"""Run as a module: loads Django, then forks a ``manage.py runjobs`` for each log file that it reads the name of, and prints its pid."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import django
from django.core.management import execute_from_command_line


def _fork(log: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    with log.open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.close(0)
    try:
        execute_from_command_line(["manage.py", "runjobs", "--workers", "2"])
    finally:
        os._exit(1)


def _main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the dead here
    django.setup()
    pids = []
    for line in sys.stdin:
        pids.append(_fork(Path(line.strip())))
        sys.stdout.write(f"{pids[-1]}\n")
        sys.stdout.flush()
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    _main()
