"""Commands of ``manage.py`` as processes that begin at once, forked by :mod:`tests.acceptance.forking`.

Each is a process and a session of its own, with the environment that it is given, and nothing of the tests' but its streams.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parents[2]


class Running(Protocol):
    """What tests use of a process that they have started."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...

    def kill(self) -> None: ...


def start(
    arguments: Sequence[str],
    env: Mapping[str, str],
    *,
    stdin: int,
    stdout: int,
    stderr: int,
) -> Running:
    """Start ``manage.py`` with the arguments; the streams are descriptors."""
    if _needs_an_interpreter_of_its_own(env):
        return subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=dict(env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    return _Forked(arguments, env, (stdin, stdout, stderr))


def _needs_an_interpreter_of_its_own(env: Mapping[str, str]) -> bool:
    """What is read before there is any Python code; and an embedded server is used by whoever loads the settings."""
    begun = {name for name in {*env, *os.environ} if name.startswith(("LD_", "PYTHON"))}
    return not env.get("DATABASE_URL") or any(
        env.get(name) != os.environ.get(name) for name in begun
    )


class _Forked:
    def __init__(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        streams: tuple[int, int, int],
    ) -> None:
        self._status: int | None = None
        self._answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = {"arguments": list(arguments), "environment": dict(env)}
        with theirs:
            message = json.dumps(request).encode()
            socket.send_fds(_forking(), [message], [*streams, theirs.fileno()])
        self.pid = self._answer(None)

    def _answer(self, timeout: float | None) -> int:
        self._answers.settimeout(timeout)
        said = self._answers.recv(64)
        if not said:
            raise RuntimeError("the process that forks the commands is gone")
        return int(said)

    def poll(self) -> int | None:
        if self._status is None:
            try:
                self._status = self._answer(0)
            except BlockingIOError:
                return None
            self._answers.close()
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        if self._status is None:
            try:
                self._status = self._answer(timeout)
            except TimeoutError:
                raise subprocess.TimeoutExpired("manage.py", timeout or 0) from None
            self._answers.close()
        return self._status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@functools.cache
def _forking() -> socket.socket:
    """Where the requests go; the process ends when this one does."""
    requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        forking = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.forking"],
            cwd=ROOT,
            stdin=theirs.fileno(),
            start_new_session=True,
        )

    def end() -> None:
        requests.close()
        forking.wait()

    atexit.register(end)
    return requests
