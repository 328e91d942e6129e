"""The schema that is worked in."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

from acw.scratch import schema
from acw.scratch.schema import Parameters, Use
from acw.torture import tables

SCHEMA_PREFIX = "acw_torture_"


class Scratch(schema.Scratch):
    """The product's tables, and beside them those in which a run is noted."""

    use: ClassVar[Use] = Use(
        name="torture",
        prefix=SCHEMA_PREFIX,
        locks=0x544F5254,
        settings="acw.torture.settings",
        directory_variable="TORTURE_DIRECTORY",
    )

    @property
    def logs(self) -> Path:
        """Where its processes log to."""
        return self.directory / "logs"

    @property
    def worker_sessions(self) -> str:
        """The name (``application_name``) of the sessions of this run's workers, and of nobody else's."""
        return f"{self.schema}_worker"

    def prepare(self) -> None:
        self.logs.mkdir()

    def migrate(self) -> None:
        super().migrate()
        with self.connect() as connection:
            tables.make(connection, self.schema)


def scratch_schema(
    server: Parameters | None = None,
) -> AbstractContextManager[Scratch]:
    """A schema with all its tables for as long as the block lasts; see :func:`acw.scratch.schema.scratch_schema`."""
    return schema.scratch_schema(Scratch, server=server)
