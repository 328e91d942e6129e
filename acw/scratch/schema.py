"""A schema of its own in the configured database: made, migrated, and dropped again.

No row of the operator's is read or written. What the schema does not keep apart is the server: its
load, and the notifications, whose channels are the database's. A worker of the operator's that hears one looks
into its own tables once more and finds nothing, which is harmless.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

import psycopg
from cryptography.fernet import Fernet
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import pq, sql
from psycopg.conninfo import make_conninfo

from acw import env
from acw.scratch.errors import ScratchError

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"

_OUTPUT_TAIL = 2_000
_KEPT = "kept_"
_LEFTOVERS = """
SELECT nspname FROM pg_namespace
WHERE nspname ~ %s AND pg_has_role(nspowner, 'USAGE')
ORDER BY nspname
"""
_MAY_CREATE = """
SELECT current_user, current_database(),
    has_database_privilege(current_user, current_database(), 'CREATE')
"""

Parameters = Mapping[str, Any]
"""What libpq takes."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """What schemas are made for.

    ``prefix`` begins their names, ``locks`` is the class of the advisory locks by which one shows that its run is alive.
    ``directory_variable`` tells its processes, whose settings are the module ``settings``, where they may write.
    """

    name: str
    prefix: str
    locks: int
    settings: str
    directory_variable: str


class Scratch:
    """The schema, and the directory beside it for whatever its processes put on disk.

    ``server`` is how libpq reaches the database; None is the configured one.
    """

    use: ClassVar[Use]

    def __init__(
        self, schema: str, directory: Path, server: Parameters | None = None
    ) -> None:
        self.schema = schema
        self.directory = directory
        self._server = configured_server() if server is None else server
        self._secrets = {
            "SECRET_KEY": secrets.token_urlsafe(50),
            "ACW_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
        }

    def prepare(self) -> None:
        """Make what is wanted in the directory, which is there and empty."""

    def env(self, *, application_name: str = "", **settings: str) -> dict[str, str]:
        """The environment of product processes that work here, with these variables on top.

        Of the operator's settings none is taken over but the database: the directories are the run's
        own, webhooks are off, everything else has its default. Their sessions are called
        ``application_name`` where that is given.
        """
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in env.VARIABLES
        }
        return {
            **inherited,
            **self._secrets,
            "DJANGO_SETTINGS_MODULE": self.use.settings,
            self.use.directory_variable: str(self.directory),
            "DATABASE_URL": self._url(application_name),
            "ACW_ENV_FILE": "",
            "ACW_STATE_DIR": str(self.directory / "state"),
            "ACW_DATA_DIR": str(self.directory / "data"),
            "ACW_LOG_FORMAT": "json",
            "ACW_HTTPS": "false",
            "NOTIFY_WEBHOOK_ENABLED": "false",
            **settings,
        }

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection, in autocommit, that sees the schema only."""
        return psycopg.connect(make_conninfo(**self._parameters()), autocommit=True)

    def migrate(self) -> None:
        """Make the product's tables; raises ScratchError with what was said where that fails."""
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, str(MANAGE), "migrate", "--no-input", "--verbosity=0"],
            env=self.env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            process_group=0,
        )
        if done.returncode:
            said = (done.stdout + done.stderr).strip()[-_OUTPUT_TAIL:]
            raise ScratchError(
                f"the tables could not be made in the schema {self.schema}: {said}"
            )

    def keep(self) -> None:
        """Let schema and directory outlive the run, under other names, which no later run clears away."""
        schema = self.use.prefix + _KEPT + self.schema.removeprefix(self.use.prefix)
        with self.connect() as connection:
            connection.execute(
                sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(
                    sql.Identifier(self.schema), sql.Identifier(schema)
                )
            )
        self.schema = schema
        self.directory = self.directory.rename(self.directory.with_name(schema))

    def _parameters(self) -> dict[str, Any]:
        options = self._server.get("options", "")
        return {
            **self._server,
            # Only this schema: a name that is missing in it is an error, never somebody's table.
            "options": f"{options} -c search_path={self.schema}".strip(),
        }

    def _url(self, application_name: str) -> str:
        parameters = self._parameters()
        if application_name:
            parameters["application_name"] = application_name
        query = "&".join(
            f"{name}={quote(str(value), safe='')}" for name, value in parameters.items()
        )
        return f"postgresql:///?{query}"


S = TypeVar("S", bound=Scratch)


@contextmanager
def scratch_schema(kind: type[S], *, server: Parameters | None = None) -> Iterator[S]:
    """A migrated schema of its own for as long as the block lasts, however that ends.

    What runs that were killed have left is dropped first. ``server`` is how libpq reaches the database, None the
    configured one. Raises ScratchError where the role may not make schemas.
    """
    server = configured_server() if server is None else server
    schema = kind.use.prefix + secrets.token_hex(8)
    with _connect(server) as connection:
        check_rights(connection, kind.use)
        drop_leftovers(connection, kind.use)
        # Held by this session: it goes when the process goes, however that happens.
        connection.execute(
            "SELECT pg_advisory_lock(%s, hashtext(%s))", lock(kind.use, schema)
        )
        directory = _directory_of(schema)
        directory.mkdir(mode=0o700)
        try:
            scratch = kind(schema, directory, server)
            scratch.prepare()
            connection.execute(
                sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema))
            )
            scratch.migrate()
            yield scratch
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            _drop(schema, connection, server)


def drop_leftovers(connection: psycopg.Connection[Any], use: Use) -> list[str]:
    """Drop the schemas of runs that are no longer alive, with their directories, and return their names."""
    found = connection.execute(_LEFTOVERS, [f"^{use.prefix}[0-9a-f]{{16}}$"])
    dropped = []
    for (schema,) in found.fetchall():
        key = lock(use, schema)
        free = connection.execute(
            "SELECT pg_try_advisory_lock(%s, hashtext(%s))", key
        ).fetchone()
        if free and free[0]:
            shutil.rmtree(_directory_of(schema), ignore_errors=True)
            connection.execute(_dropping(schema))
            connection.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", key)
            dropped.append(schema)
    return dropped


def lock(use: Use, schema: str) -> tuple[int, str]:
    """The parameters of the advisory lock that a schema's run holds as long as it lives."""
    return use.locks, schema


def check_rights(connection: psycopg.Connection[Any], use: Use) -> None:
    """Raise ScratchError where the role may not make a schema, which says what to do."""
    row = connection.execute(_MAY_CREATE).fetchone()
    if row and not row[2]:
        raise ScratchError(
            f"the role {row[0]} of DATABASE_URL may not make a schema in the database {row[1]}, and the {use.name}"
            f" works in one of its own: GRANT CREATE ON DATABASE {row[1]} TO {row[0]}, or run it with another role"
        )


def configured_server() -> dict[str, Any]:
    """How libpq reaches the configured server; an embedded one is started by that."""
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    django = connections[DEFAULT_DB_ALIAS].get_connection_params()
    return {name: value for name, value in django.items() if name in known and value}


def _directory_of(schema: str) -> Path:
    """Named like the schema, so that whoever drops what is left of a run finds both."""
    return Path(tempfile.gettempdir(), schema)


def _drop(schema: str, connection: psycopg.Connection[Any], server: Parameters) -> None:
    try:
        connection.execute(_dropping(schema))
    except psycopg.OperationalError:
        # The server has ended this connection, which must not be what the schema is left for.
        with _connect(server) as another:
            another.execute(_dropping(schema))


def _dropping(schema: str) -> sql.Composed:
    return sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema))


def _connect(server: Parameters) -> psycopg.Connection[Any]:
    """A connection to the database, in autocommit, that may be idle for as long as it takes."""
    connection = psycopg.connect(make_conninfo(**server), autocommit=True)
    connection.execute("SET idle_session_timeout = 0")
    return connection
