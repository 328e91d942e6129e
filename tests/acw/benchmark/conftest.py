from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from acw.benchmark.scratch import Scratch, scratch_schema


@pytest.fixture(scope="session")
def shared_scratch() -> Iterator[Scratch]:
    """One schema for all of them: making the tables takes seconds."""
    with scratch_schema() as scratch:
        yield scratch


@pytest.fixture
def scratch(shared_scratch: Scratch) -> Scratch:
    """The schema, with nothing in it."""
    shared_scratch.reset()
    return shared_scratch


@pytest.fixture
def connection(scratch: Scratch) -> Iterator[psycopg.Connection]:
    with scratch.connect() as connection:
        yield connection
