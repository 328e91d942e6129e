from __future__ import annotations

import shutil
from collections.abc import Iterator

import psycopg
import pytest

from acw.torture.scratch import Scratch, scratch_schema

_TABLES = """
SELECT tablename FROM pg_tables
WHERE schemaname = current_schema() AND tablename !~ '^(django_|auth_permission$)'
"""


@pytest.fixture(scope="session")
def shared_scratch() -> Iterator[Scratch]:
    """One schema for all of them: making the tables takes seconds."""
    with scratch_schema() as scratch:
        yield scratch


@pytest.fixture
def scratch(shared_scratch: Scratch) -> Scratch:
    """The schema, with nothing in its tables."""
    with shared_scratch.connect() as connection:
        # Whoever still has a lock there is a defect, and would have the tests wait for ever.
        connection.execute("SET lock_timeout = '30s'")
        names = ", ".join(name for (name,) in connection.execute(_TABLES))
        connection.execute(f"TRUNCATE {names} RESTART IDENTITY CASCADE")
    shutil.rmtree(shared_scratch.directory)
    shared_scratch.directory.mkdir()
    shared_scratch.prepare()
    return shared_scratch


@pytest.fixture
def connection(scratch: Scratch) -> Iterator[psycopg.Connection]:
    with scratch.connect() as connection:
        yield connection
