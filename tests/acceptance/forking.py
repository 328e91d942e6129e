"""Run as a module: forks commands of ``manage.py`` from processes that have loaded Django, in milliseconds instead of a second each.

Each request is a message on stdin, which is a socket: a command's arguments and environment, and four descriptors: its
stdin, stdout, stderr, and the socket on which its pid is told and, when it has ended, its exit status. The first command
of an environment makes a process that loads the product's settings and apps in it, and forks this command and later ones.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress

Environment = dict[str, str]

_LOADED_MOST = 3
_REQUEST_MOST = 256 * 1024
_DESCRIPTORS_MOST = 1024


class Forking:
    """The loop of one process: of the first one, which makes others, or of one that has loaded an environment."""

    def __init__(self, *, loaded: bool) -> None:
        self._requests = socket.socket(fileno=0)
        self._is_loaded = loaded
        self._retires = False
        # What the first one has made, the newest last; and who waits for which command.
        self._others: dict[str, socket.socket] = {}
        self._retired: list[socket.socket] = []
        self._answers: dict[int, int] = {}
        self._woken, self._wakes = socket.socketpair()
        for each in (self._woken, self._wakes):
            each.setblocking(False)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> list[str] | Environment | None:
        """Returns where a forked process has to go on: with a command's arguments, or an environment to load.

        In the process itself None, when it is no longer needed and nothing runs: what does when the tests end is killed.
        """
        while self._answers or not self._retires:
            ready, _, _ = select.select([self._woken, self._requests], [], [])
            if self._woken in ready:
                self._woken.recv(4096)
                self._tell_who_has_ended()
            if self._requests in ready:
                message, given, _, _ = socket.recv_fds(self._requests, _REQUEST_MOST, 4)
                if not message:
                    self._end_all()
                    return None
                request = json.loads(message)
                if request is None:
                    self._retires = True
                elif self._is_loaded:
                    if self._is_forked(given):
                        return list(request["arguments"])
                else:
                    environment: Environment = request["environment"]
                    if self._is_made(environment):
                        return environment
                    self._pass_on(message, environment, given)
        return None

    def _is_forked(self, given: list[int]) -> bool:
        """Fork the command; True in its process."""
        *streams, answers = given
        pid = os.fork()
        if pid:
            self._answers[pid] = answers
            _tell(answers, pid)
            for descriptor in streams:
                os.close(descriptor)
            return False
        os.setsid()
        self._let_go(streams)
        return True

    def _is_made(self, environment: Environment) -> bool:
        """See that there is a process of the environment; True in it, if it is new."""
        key = _key(environment)
        if key in self._others:
            return False
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork():
            theirs.close()
            while len(self._others) >= _LOADED_MOST:
                oldest = self._others.pop(next(iter(self._others)))
                self._retired.append(oldest)
                oldest.send(b"null")
            self._others[key] = ours
            return False
        ours.detach()
        self._let_go([theirs.detach()])
        return True

    def _pass_on(
        self, message: bytes, environment: Environment, given: list[int]
    ) -> None:
        socket.send_fds(self._others[_key(environment)], [message], given)
        for descriptor in given:
            os.close(descriptor)

    def _end_all(self) -> None:
        for each in (*self._others.values(), *self._retired):
            each.close()
        for pid in self._answers:
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.wait()

    def _let_go(self, streams: list[int]) -> None:
        """In a new process: these are its standard streams, and nothing else of the parent's is open.

        The parent's sockets are not closed by themselves, later, when their numbers are somebody else's.
        """
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        ours = (self._requests, self._woken, self._wakes)
        for each in (*ours, *self._others.values(), *self._retired):
            each.detach()
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        os.closerange(3, _DESCRIPTORS_MOST)

    def _tell_who_has_ended(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                if (answers := self._answers.pop(pid, None)) is not None:
                    _tell(answers, os.waitstatus_to_exitcode(status))
                    os.close(answers)


def _key(environment: Environment) -> str:
    return json.dumps(environment, sort_keys=True)


def _tell(answers: int, number: int) -> None:
    with suppress(BrokenPipeError):
        os.write(answers, str(number).encode())


def _import_what_needs_no_settings() -> None:
    import cryptography.fernet
    import django.core.management
    import django.core.serializers.json
    import django.db.backends.postgresql.base
    import django.forms
    import django.template.defaulttags
    import msgspec
    import psycopg
    import requests

    del cryptography, django, msgspec, psycopg, requests


def _load(environment: Environment) -> None:
    import django

    os.environ.clear()
    os.environ.update(environment)
    # What is wrong with the settings, each command finds and says itself.
    with suppress(Exception):
        django.setup()
    gc.freeze()


def main() -> None:
    _import_what_needs_no_settings()
    told = Forking(loaded=False).serve()
    if isinstance(told, dict):
        _load(told)
        told = Forking(loaded=True).serve()
    if isinstance(told, list):
        sys.argv = ["manage.py", *told]
        runpy.run_path("manage.py", run_name="__main__")


if __name__ == "__main__":
    main()
