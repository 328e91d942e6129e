"""A schema of the benchmark's own in the configured database: made, migrated, and dropped again.

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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from cryptography.fernet import Fernet
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import pq, sql
from psycopg.conninfo import make_conninfo

from acw import env
from acw.benchmark.errors import BenchmarkError

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
SCHEMA_PREFIX = "acw_bench_"
DIRECTORY_VARIABLE = "BENCHMARK_DIRECTORY"

_LOCKS = 0x42454E43
"""The class of the advisory locks by which a schema shows that its run is alive."""

_OUTPUT_TAIL = 2_000
_QUEUE_TABLES = ("jobs", "job_attempts", "job_runners", "job_workers")
# Django keeps in the others what `migrate` has written.
_PRODUCT_TABLES = r"""
SELECT tablename FROM pg_tables
WHERE schemaname = current_schema() AND tablename !~ '^(django_|auth_permission$)'
"""
_LEFTOVERS = """
SELECT nspname FROM pg_namespace
WHERE nspname ~ %s AND pg_has_role(nspowner, 'USAGE')
ORDER BY nspname
"""
_MAY_CREATE = """
SELECT current_user, current_database(),
    has_database_privilege(current_user, current_database(), 'CREATE')
"""
_MAY_CHECKPOINT = """
SELECT rolsuper OR pg_has_role(current_user, 'pg_checkpoint', 'USAGE')
FROM pg_roles WHERE rolname = current_user
"""


class Scratch:
    """The schema, and the directory beside it for whatever its processes put on disk."""

    def __init__(self, schema: str, directory: Path) -> None:
        self.schema = schema
        self.directory = directory
        self.meters = directory / "meters"
        self._parameters = {
            **_connection_parameters(),
            # Only this schema: a name that is missing in it is an error, never somebody's table.
            "options": f"{_connection_parameters().get('options', '')} -c search_path={schema}".strip(),
        }
        self._secrets = {
            "SECRET_KEY": secrets.token_urlsafe(50),
            "ACW_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
        }

    def env(self, **settings: str) -> dict[str, str]:
        """The environment of product processes that work here, with these variables on top.

        Of the operator's settings none is taken over but the database: the directories are the benchmark's
        own, webhooks are off, everything else has its default.
        """
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in env.VARIABLES
        }
        return {
            **inherited,
            **self._secrets,
            "DJANGO_SETTINGS_MODULE": "acw.benchmark.settings",
            DIRECTORY_VARIABLE: str(self.directory),
            "DATABASE_URL": self._url(),
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
        return psycopg.connect(make_conninfo(**self._parameters), autocommit=True)

    def clear(self) -> None:
        """Empty the queue's tables and forget what was counted; no worker may be running."""
        with self.connect() as connection:
            _truncate(connection, _QUEUE_TABLES)
        for file in self.meters.iterdir():
            file.unlink()

    def reset(self) -> None:
        """Empty all of the product's tables and the directory; no worker may be running.

        What one measurement has made beside jobs (workspaces, endpoints) would be work for the workers of the next.
        """
        with self.connect() as connection:
            _truncate(
                connection, [name for (name,) in connection.execute(_PRODUCT_TABLES)]
            )
        shutil.rmtree(self.directory, ignore_errors=True)
        self.meters.mkdir(parents=True)

    def settle(self) -> None:
        """Have the server do now what it would do in the middle of a measurement.

        A checkpoint is left out where the role may not ask for one.
        """
        with self.connect() as connection:
            connection.execute("VACUUM (ANALYZE) jobs")
            allowed = connection.execute(_MAY_CHECKPOINT).fetchone()
            if allowed and allowed[0]:
                connection.execute("CHECKPOINT")

    def migrate(self) -> None:
        """Make the product's tables; raises BenchmarkError with what was said where that fails."""
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
            raise BenchmarkError(
                f"the tables could not be made in the schema {self.schema}: {said}"
            )

    def _url(self) -> str:
        query = "&".join(
            f"{name}={quote(str(value), safe='')}"
            for name, value in self._parameters.items()
        )
        return f"postgresql:///?{query}"


@contextmanager
def scratch_schema() -> Iterator[Scratch]:
    """A migrated schema of its own for as long as the block lasts, however that ends.

    What runs that were killed have left is dropped first. Raises BenchmarkError where the role may not
    make schemas.
    """
    schema = SCHEMA_PREFIX + secrets.token_hex(8)
    with _connect() as connection:
        check_rights(connection)
        drop_leftovers(connection)
        # Held by this session: it goes when the process goes, however that happens.
        connection.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", lock(schema))
        directory = _directory_of(schema)
        directory.mkdir(mode=0o700)
        try:
            scratch = Scratch(schema, directory)
            scratch.meters.mkdir()
            connection.execute(
                sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema))
            )
            scratch.migrate()
            yield scratch
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            _drop(schema, connection)


def drop_leftovers(connection: psycopg.Connection[Any]) -> list[str]:
    """Drop the schemas of runs that are no longer alive, with their directories, and return their names."""
    found = connection.execute(_LEFTOVERS, [f"^{SCHEMA_PREFIX}[0-9a-f]{{16}}$"])
    dropped = []
    for (schema,) in found.fetchall():
        key = lock(schema)
        free = connection.execute(
            "SELECT pg_try_advisory_lock(%s, hashtext(%s))", key
        ).fetchone()
        if free and free[0]:
            shutil.rmtree(_directory_of(schema), ignore_errors=True)
            _drop(schema, connection)
            connection.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", key)
            dropped.append(schema)
    return dropped


def lock(schema: str) -> tuple[int, str]:
    """The parameters of the advisory lock that a schema's run holds as long as it lives."""
    return _LOCKS, schema


def _directory_of(schema: str) -> Path:
    """Named like the schema, so that whoever drops what is left of a run finds both."""
    return Path(tempfile.gettempdir(), schema)


def _drop(schema: str, connection: psycopg.Connection[Any]) -> None:
    statement = sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(
        sql.Identifier(schema)
    )
    try:
        connection.execute(statement)
    except psycopg.OperationalError:
        # The server has ended this connection, which must not be what the schema is left for.
        with _connect() as another:
            another.execute(statement)


def _connect() -> psycopg.Connection[Any]:
    """A connection to the configured database, in autocommit, that may be idle for as long as it takes."""
    connection = psycopg.connect(
        make_conninfo(**_connection_parameters()), autocommit=True
    )
    connection.execute("SET idle_session_timeout = 0")
    return connection


def _truncate(connection: psycopg.Connection[Any], tables: Iterable[str]) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, tables))
    connection.execute(sql.SQL("TRUNCATE {} CASCADE").format(names))


def check_rights(connection: psycopg.Connection[Any]) -> None:
    """Raise BenchmarkError where the role may not make a schema, which says what to do."""
    row = connection.execute(_MAY_CREATE).fetchone()
    if row and not row[2]:
        raise BenchmarkError(
            f"the role {row[0]} of DATABASE_URL may not make a schema in the database {row[1]}, and the benchmark"
            f" works in one of its own: GRANT CREATE ON DATABASE {row[1]} TO {row[0]}, or measure with another role"
        )


def _connection_parameters() -> dict[str, Any]:
    """How libpq reaches the configured server; an embedded one is started by that."""
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    django = connections[DEFAULT_DB_ALIAS].get_connection_params()
    return {name: value for name, value in django.items() if name in known and value}
