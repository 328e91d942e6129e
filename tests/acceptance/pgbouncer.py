"""Debian's PgBouncer in front of the tests' server, for as long as a test needs it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
from django.db import connections
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from acw.embedded import server_user
from jobs import wakeup
from jobs.testing import wait_until
from tests.missing import cannot_run

_PLACES = (os.environ.get("PATH", os.defpath), "/usr/sbin")


def program() -> str:
    """Where the program is; skips the test where it is missing, and fails it in CI."""
    found = shutil.which("pgbouncer", path=os.pathsep.join(_PLACES))
    if found is None:
        cannot_run("pgbouncer is not installed (Debian: apt-get install pgbouncer)")
    return found


class PgBouncer:
    """Started and stopped as a context manager; ``url`` leads through it to the database that ``behind`` leads to.

    ``pool_mode`` is ``transaction``, ``session`` or ``statement``; ``options`` are further lines of its section.
    """

    def __init__(
        self, behind: str, *, pool_mode: str = "transaction", **options: str
    ) -> None:
        self._program = program()
        self._behind = conninfo_to_dict(behind)
        self._options = {"pool_mode": pool_mode, **options}
        self._popen: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="acw-pgbouncer-"))
        self.log = self.directory / "log"

    @property
    def url(self) -> str:
        user, name = self._behind["user"], self._behind["dbname"]
        return f"postgresql://{quote(str(user))}@127.0.0.1:{self.port}/{name}"

    @property
    def pid(self) -> int:
        assert self._popen is not None
        return self._popen.pid

    def send(self, number: signal.Signals) -> None:
        """Suspended by SIGSTOP, it takes what is sent to it, and answers nothing."""
        os.kill(self.pid, number)

    def __enter__(self) -> PgBouncer:
        user = server_user.for_data_dir(self.directory / "none")
        configuration = self.directory / "pgbouncer.ini"
        configuration.write_text(self._configuration())
        users = self.directory / "users.txt"
        users.write_text(f'"{self._behind["user"]}" ""\n')
        if user is not None:
            # It does not run as root either.
            for path in (self.directory, configuration, users):
                os.chown(path, user.uid, user.gid)
        with self.log.open("wb") as output:
            self._popen = subprocess.Popen(
                [self._program, str(configuration)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user.uid if user is not None else None,
                group=user.gid if user is not None else None,
            )
        wait_until(self._accepts, f"PgBouncer accepts connections\n{self._said()}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._popen is not None:
            self._popen.kill()
            self._popen.wait()
        shutil.rmtree(self.directory)

    def _configuration(self) -> str:
        server = " ".join(
            f"{key}={self._behind[key]}"
            for key in ("host", "port", "user")
            if self._behind.get(key)
        )
        options = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": str(self.directory / "users.txt"),
            "max_client_conn": "500",
            "default_pool_size": "50",
            **self._options,
        }
        lines = [f"{key} = {value}" for key, value in options.items()]
        return "\n".join(["[databases]", f"* = {server}", "[pgbouncer]", *lines, ""])

    def _accepts(self) -> bool:
        assert self._popen is not None
        assert self._popen.poll() is None, self._said()
        try:
            with psycopg.connect(self.url):
                return True
        except psycopg.OperationalError:
            return False

    def _said(self) -> str:
        return self.log.read_text(errors="replace")


@contextmanager
def through(pool_mode: str) -> Iterator[PgBouncer]:
    """Django's default database as it is, and through PgBouncer what this process connects to it meanwhile."""
    settings = connections["default"].settings_dict
    before = {key: settings[key] for key in ("HOST", "PORT")}
    where = {
        "host": settings["HOST"],
        "port": settings["PORT"],
        "user": settings["USER"],
        "dbname": settings["NAME"],
    }
    named = {key: str(value) for key, value in where.items() if value}
    with PgBouncer(make_conninfo("", **named), pool_mode=pool_mode) as bouncer:
        connections["default"].close()
        settings.update({"HOST": "127.0.0.1", "PORT": str(bouncer.port)})
        try:
            yield bouncer
        finally:
            settings.update(before)
            connections["default"].close()
            wakeup.close(timeout=5)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
