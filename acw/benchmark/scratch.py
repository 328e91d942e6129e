"""The schema that the benchmark works in, and how it is emptied between measurements."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

import psycopg
from psycopg import sql

from acw.scratch import schema
from acw.scratch.schema import Use

SCHEMA_PREFIX = "acw_bench_"
DIRECTORY_VARIABLE = "BENCHMARK_DIRECTORY"

_QUEUE_TABLES = ("jobs", "job_attempts", "job_runners", "job_workers")
# Django keeps in the others what `migrate` has written.
_PRODUCT_TABLES = r"""
SELECT tablename FROM pg_tables
WHERE schemaname = current_schema() AND tablename !~ '^(django_|auth_permission$)'
"""
_MAY_CHECKPOINT = """
SELECT rolsuper OR pg_has_role(current_user, 'pg_checkpoint', 'USAGE')
FROM pg_roles WHERE rolname = current_user
"""


class Scratch(schema.Scratch):
    """The benchmark's; ``meters`` is where the calls of its handlers are counted."""

    use: ClassVar[Use] = Use(
        name="benchmark",
        prefix=SCHEMA_PREFIX,
        locks=0x42454E43,
        settings="acw.benchmark.settings",
        directory_variable=DIRECTORY_VARIABLE,
    )

    @property
    def meters(self) -> Path:
        return self.directory / "meters"

    def prepare(self) -> None:
        self.meters.mkdir()

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


def scratch_schema() -> AbstractContextManager[Scratch]:
    """A migrated schema for as long as the block lasts; see :func:`acw.scratch.schema.scratch_schema`."""
    return schema.scratch_schema(Scratch)


def _truncate(connection: psycopg.Connection[Any], tables: Iterable[str]) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, tables))
    connection.execute(sql.SQL("TRUNCATE {} CASCADE").format(names))
