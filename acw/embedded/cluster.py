"""One private PostgreSQL server: made, started, shared between processes, stopped."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from functools import cache
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from acw.embedded import (
    binaries,
    locks,
    postmaster,
    programs,
    server_user,
    socket_dir,
)
from acw.embedded.errors import ClusterError
from acw.embedded.server_user import ServerUser

SUPERUSER = "postgres"

# Recovery after a crash reads the log since the last checkpoint: seconds, as a rule.
_START_SECONDS = 120
_STOP_SECONDS = 60
_RETRY_SECONDS = 0.2
_LOG_TAIL_LINES = 15
# A shell reads the command line that pg_ctl makes of the paths, within double quotes.
_UNSAFE_IN_PATHS = '"$`\\'


class Cluster:
    """The server whose files are in `data_dir`, which is made when it is not there.

    The process that has started or used it holds it until it ends or says `release`;
    the last one out stops the server. `settings` are PostgreSQL's, given at the start.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        database: str = SUPERUSER,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = data_dir.resolve()
        self.log_file = self._beside("log")
        self._database = database
        self._settings = dict(settings or {})
        self._users = locks.UsersLock(self._beside("users.lock"))
        self._mutex = threading.Lock()

    def is_running(self) -> bool:
        try:
            server = postmaster.read(self.data_dir)
        except PermissionError:
            raise ClusterError(
                f"{self.data_dir} belongs to another user: run ACW as the one who made"
                " it, remove it (the data with it), or set DATABASE_URL"
            ) from None
        return server is not None and server.accepts

    def ensure_running(self) -> None:
        """Start the server unless it runs; this process is then one of its users."""
        with self._mutex:
            if self._users.held and self.is_running():
                return
            self._make_parent()
            with self._starting():
                self._hold()
                if not self.is_running():
                    self._start()

    def connection_parameters(self) -> dict[str, str]:
        """Return how libpq reaches the running server."""
        server = postmaster.read(self.data_dir)
        if server is None:
            raise ClusterError(f"the server in {self.data_dir} does not run")
        return {
            "host": str(server.socket_dir),
            "port": str(postmaster.PORT),
            "user": SUPERUSER,
        }

    def connect(self, database: str = SUPERUSER) -> psycopg.Connection:
        """Return a new connection, in autocommit."""
        where = make_conninfo(**self.connection_parameters(), dbname=database)
        return psycopg.connect(where, autocommit=True)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server, whoever uses it."""
        with self._starting():
            self._stop(mode)

    def restart(self, mode: str = "fast") -> None:
        with self._starting():
            self._stop(mode)
            self._start()

    def hold(self) -> None:
        """Be one of the server's users, until this process ends or says `release`."""
        with self._mutex, self._starting():
            self._hold()

    def release(self, *, patience: float = 0) -> bool:
        """Use the server no longer; return whether that stopped it, as the last's does.

        `patience` is how many seconds others who are ending may take.
        """
        atexit.unregister(self.release)
        with self._mutex:
            if not self._users.held:
                return False
            with self._starting():
                last = self._users.release(patience=patience)
                if last:
                    self._stop("fast")
                return last

    def _hold(self) -> None:
        if not self._users.held:
            self._users.hold()
            atexit.register(self.release)

    def _start(self) -> None:
        user = server_user.for_data_dir(self.data_dir)
        self._give_access(user)
        self._initialise(user)
        options = {
            "listen_addresses": "",
            "unix_socket_directories": f'"{self._socket_dir(user)}"',
            "unix_socket_permissions": "0700",
            **self._settings,
        }
        arguments = " ".join(
            f"-c {shlex.quote(f'{name}={value}')}" for name, value in options.items()
        )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            postmaster.disown_stale_file(self.data_dir)
            logged_before = self._log_size(user)
            programs.run(
                "pg_ctl",
                *("start", "--wait", f"--timeout={_START_SECONDS}", "--silent"),
                *("--log", str(self.log_file), "--options", arguments),
                *("--pgdata", str(self.data_dir)),
                user=user,
            )
            if self.is_running():
                break
            said = self._log_since(logged_before)
            # A killed server's backends take a moment to notice and to go.
            leftover = "still in use" in said or "already exists" in said
            if not leftover or time.monotonic() > deadline:
                raise ClusterError(
                    f"PostgreSQL did not start in {self.data_dir}; it logged: {said}"
                )
            time.sleep(_RETRY_SECONDS)
        self._ensure_database()

    def _stop(self, mode: str) -> None:
        server = postmaster.read(self.data_dir)
        if server is None:
            return
        user = server_user.for_data_dir(self.data_dir)
        if user:
            # Others tidy directories too: the way may have been closed meanwhile.
            server_user.open_way(self.data_dir, user)
        stopped = programs.run(
            "pg_ctl",
            *("stop", "--wait", f"--timeout={_STOP_SECONDS}", "--silent"),
            *("--mode", mode, "--pgdata", str(self.data_dir)),
            user=user,
        )
        if self.is_running():
            raise ClusterError(
                f"PostgreSQL did not stop in {self.data_dir}: {stopped.stderr.strip()}"
            )
        if server.socket_dir != self.data_dir:
            with suppress(OSError):  # not empty after a crash, or gone
                server.socket_dir.rmdir()

    def _initialise(self, user: ServerUser | None) -> None:
        version_file = self.data_dir / "PG_VERSION"
        if version_file.exists():
            version = version_file.read_text().strip()
            if version != str(binaries.MAJOR):
                raise ClusterError(
                    f"{self.data_dir} was made by PostgreSQL {version}, and"
                    f" {binaries.PACKAGE} brings {binaries.MAJOR}: move the data with"
                    " pg_dump, or remove the directory and begin anew"
                )
            return
        # Made beside and renamed: a directory with the name is always a whole one.
        draft = self._beside("new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        if user:
            os.chown(draft, user.uid, user.gid)
        made = programs.run(
            "initdb",
            *("--pgdata", str(draft), "--username", SUPERUSER, "--auth", "trust"),
            *("--encoding", "UTF8", "--locale", "C"),
            *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
            *("--set", "timezone=UTC", "--set", "log_timezone=UTC"),
            *(["--no-sync"] if self._settings.get("fsync") == "off" else []),
            user=user,
        )
        if made.returncode != 0:
            raise ClusterError(f"PostgreSQL's initdb failed: {made.stderr.strip()}")
        try:
            draft.rename(self.data_dir)
        except OSError as error:
            raise ClusterError(
                f"{self.data_dir} cannot be made: {error.strerror}"
            ) from None

    def _ensure_database(self) -> None:
        with self.connect() as connection:
            known = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", [self._database]
            ).fetchone()
            if not known:
                name = sql.Identifier(self._database)
                connection.execute(sql.SQL("CREATE DATABASE {}").format(name))

    def _give_access(self, user: ServerUser | None) -> None:
        if user is None:
            return
        server_user.open_way(self.data_dir, user)
        package = binaries.package_dir()
        if package is not None:
            server_user.open_way(package, user)
            for tree in (package, package.with_name(f"{package.name}.libs")):
                server_user.make_readable(tree)

    def _make_parent(self) -> None:
        unsafe = set(_UNSAFE_IN_PATHS) & set(str(self.data_dir))
        if unsafe:
            raise ClusterError(
                f"{self.data_dir} has {unsafe.pop()!r} in its path, which PostgreSQL's"
                " pg_ctl cannot take: move the project, or set ACW_STATE_DIR"
            )
        try:
            self.data_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ClusterError(
                f"{self.data_dir.parent} cannot be made: {error.strerror}"
            ) from None

    def _socket_dir(self, user: ServerUser | None) -> Path:
        directory = socket_dir.for_data_dir(self.data_dir, owner=user)
        if user:
            server_user.open_way(directory, user)
        return directory

    def _log_size(self, user: ServerUser | None) -> int:
        self.log_file.touch(mode=0o600)
        if user:
            os.chown(self.log_file, user.uid, user.gid)
        return self.log_file.stat().st_size

    def _log_since(self, position: int) -> str:
        with self.log_file.open("rb") as file:
            file.seek(position)
            lines = file.read().decode(errors="replace").splitlines()
        return " | ".join(lines[-_LOG_TAIL_LINES:]) or "nothing"

    def _starting(self) -> AbstractContextManager[None]:
        return locks.exclusive(self._beside("starting.lock"))

    def _beside(self, suffix: str) -> Path:
        return self.data_dir.with_name(f"{self.data_dir.name}.{suffix}")


@cache
def at(data_dir: Path, *, database: str) -> Cluster:
    """Return this process's one object for the cluster: its share is held once."""
    return Cluster(data_dir, database=database)
