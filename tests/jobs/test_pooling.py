from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs import pooling
from jobs.connection import QueueConnection, is_direct
from jobs.pooling import notifications_arrive
from tests.acceptance.pgbouncer import PgBouncer, through


def never() -> bool:
    return False


@pytest.fixture
def bouncer(
    request: pytest.FixtureRequest, transactional_db: None
) -> Iterator[PgBouncer]:
    """In front of the test database, in the mode that the test names; what is connected anew goes through it."""
    with through(request.param) as bouncer:
        yield bouncer


def test_they_arrive_from_the_server_itself(queue_connection: QueueConnection) -> None:
    assert is_direct(queue_connection.raw())
    assert notifications_arrive(queue_connection, given_up=never)


@pytest.mark.parametrize("bouncer", ["session"], indirect=True)
def test_they_arrive_through_a_pool_of_sessions(bouncer: PgBouncer) -> None:
    with QueueConnection() as connection:
        assert not is_direct(connection.raw())
        assert notifications_arrive(connection, given_up=never)


@pytest.mark.parametrize("bouncer", ["transaction"], indirect=True)
def test_they_do_not_arrive_through_a_pool_of_transactions_and_nobody_is_left_listening(
    bouncer: PgBouncer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooling, "ANSWER_WITHIN", 0.5)
    with QueueConnection() as connection:
        assert not is_direct(connection.raw())
        assert not notifications_arrive(connection, given_up=never)
        assert connection.execute("SELECT pg_listening_channels()", []) == []


def test_a_stop_is_not_kept_waiting(queue_connection: QueueConnection) -> None:
    assert not notifications_arrive(queue_connection, given_up=lambda: True)
