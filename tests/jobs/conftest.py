from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs import registry, wakeup
from jobs.connection import QueueConnection, TransactionConnection


@pytest.fixture(autouse=True)
def registrations() -> Iterator[None]:
    """Whatever a test registers is gone after it."""
    job_types, runners = dict(registry._job_types), dict(registry._runners)
    yield
    registry._job_types.clear()
    registry._job_types.update(job_types)
    registry._runners.clear()
    registry._runners.update(runners)


@pytest.fixture(autouse=True, scope="session")
def notifier_closed_before_the_database_goes(django_db_setup: None) -> Iterator[None]:
    yield
    wakeup.close(timeout=5)


@pytest.fixture
def noop() -> str:
    """A registered type of job that does nothing."""
    registry.job_handler("test.noop")(lambda context, payload: None)
    return "test.noop"


@pytest.fixture
def transaction_connection(db: None) -> TransactionConnection:
    """Statements in the test's own transaction."""
    return TransactionConnection()


@pytest.fixture
def queue_connection(transactional_db: None) -> Iterator[QueueConnection]:
    """A connection as workers have it, apart from the test's."""
    with QueueConnection() as connection:
        yield connection


@pytest.fixture
def second_connection(transactional_db: None) -> Iterator[QueueConnection]:
    """Another worker's."""
    with QueueConnection() as connection:
        yield connection
